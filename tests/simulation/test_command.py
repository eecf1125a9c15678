"""`python -m logboat.jepsen_style`."""

from __future__ import annotations

import pytest

from logboat.jepsen_style import __main__ as command


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["--nonsense"]])
def test_an_unknown_command_is_a_usage_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "commands:" in err


def test_help_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--help"]) == 0
    assert "commands:" in capsys.readouterr().out
