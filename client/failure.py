"""How a command ends: one sentence and one of six exit statuses."""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """The exit status of `logboat`, everywhere; scripts rely on the numbers."""

    GOOD = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    TIMED_OUT = 4
    INTERRUPTED = 130
    """128 + SIGINT, as shells count."""


TIMED_OUT_STATUSES = frozenset({408, 504})
"""Of HTTP: the answers that are ExitStatus.TIMED_OUT."""


class Failure(Exception):
    """The command cannot do what was asked. The sentence says what is wrong and what may help."""

    def __init__(self, sentence: str, status: ExitStatus = ExitStatus.FAILED) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.status = status
