"""`python -m logboat.jepsen_style`."""

from __future__ import annotations

import pytest

from logboat.jepsen_style import __main__ as command


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["--help"]])
def test_an_unknown_command_is_a_usage_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(arguments) == 2
    assert "known commands" in capsys.readouterr().err
