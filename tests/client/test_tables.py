"""Tables are for people, tabs for programs, colours for terminals."""

from __future__ import annotations

import io

import pytest

from logboat.client.terminal import Output, clear_screen, emit, table

HEADER = ("NAME", "COUNT")
ROWS = [("orders", "3"), ("a", "10,000")]


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_columns_are_as_wide_as_they_need_to_be() -> None:
    assert table(HEADER, ROWS).splitlines() == [
        "NAME    COUNT",
        "orders  3",
        "a       10,000",
    ]
    assert table(HEADER, []) == "NAME  COUNT"


def test_plain_is_rows_alone_with_tabs() -> None:
    assert table(HEADER, ROWS, Output.PLAIN) == "orders\t3\na\t10,000"


def test_plain_without_rows_is_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    emit(table(HEADER, [], Output.PLAIN))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("no_color", "bold"), [("", True), ("1", False)])
def test_colours_are_for_terminals_where_they_are_wanted(
    monkeypatch: pytest.MonkeyPatch, no_color: str, bold: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    assert "\x1b" not in table(HEADER, ROWS)
    monkeypatch.setattr("sys.stdout", Screen())
    assert ("\x1b" in table(HEADER, ROWS)) is bold
    assert "\x1b" not in table(HEADER, ROWS, Output.PLAIN)


def test_a_screen_is_cleared_only_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for screen, shown in ((io.StringIO(), ""), (Screen(), "\x1b[H\x1b[2J")):
        monkeypatch.setattr("sys.stdout", screen)
        clear_screen()
        assert screen.getvalue() == shown
