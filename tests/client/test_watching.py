"""`-w`: look again and again, in the same place."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from logboat.client import terminal


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Those that were made; Ctrl-C is pressed in the third."""
    made: list[float] = []

    def pause(seconds: float) -> None:
        made.append(seconds)
        if len(made) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", pause)
    return made


def answers() -> Iterator[str]:
    yield from ("one", "", "two")


def test_a_look_is_one_look(capsys: pytest.CaptureFixture[str], pauses: list[float]) -> None:
    terminal.look_and_watch(answers().__next__, watch=False)
    assert capsys.readouterr().out == "one\n"
    assert pauses == []


def test_watching_looks_again_until_ctrl_c(
    capsys: pytest.CaptureFixture[str], pauses: list[float]
) -> None:
    with pytest.raises(KeyboardInterrupt):
        terminal.look_and_watch(answers().__next__, watch=True, nothing="Nothing there.")
    shown = capsys.readouterr()
    assert shown.out == "one\ntwo\n", "where nobody sees a screen none is cleared"
    assert shown.err == "Nothing there.\n"
    assert pauses == [terminal.LOOK_SECONDS] * 3


def test_a_screen_is_cleared_when_the_next_answer_is_there(
    capsys: pytest.CaptureFixture[str], pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "is_terminal", lambda: True)
    seen_while_looking: list[str] = []
    found = answers()

    def look() -> str:
        seen_while_looking.append(capsys.readouterr().out)
        return next(found)

    with pytest.raises(KeyboardInterrupt):
        terminal.look_and_watch(look, watch=True)
    clear = "\x1b[H\x1b[2J"
    assert seen_while_looking == ["", f"{clear}one\n", clear]


def test_what_has_not_changed_is_not_painted_again(
    capsys: pytest.CaptureFixture[str], pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "is_terminal", lambda: True)
    found = iter(("one", "one", "two"))
    with pytest.raises(KeyboardInterrupt):
        terminal.look_and_watch(found.__next__, watch=True, shown="one")
    assert capsys.readouterr().out == "\x1b[H\x1b[2Jtwo\n"


def test_who_waits_for_something_sees_it_once(capsys: pytest.CaptureFixture[str]) -> None:
    looks = iter((None, None, "ready"))
    seen: list[str | None] = []
    waits: list[float] = []

    def look() -> str | None:
        seen.append(next(looks))
        return seen[-1]

    terminal.look_and_watch(
        look, watch=False, until=lambda: seen[-1] is not None, wait=waits.append
    )
    assert capsys.readouterr().out == "ready\n"
    assert waits == [terminal.LOOK_SECONDS] * 2
