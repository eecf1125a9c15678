"""What the coordinator answers instead of doing: raised by the rules, told to the client."""

from __future__ import annotations

from ...wire import ErrorCode


class Refused(Exception):
    """Nothing was changed. `error` is the protocol's code, `sentence` goes beside it."""

    def __init__(self, error: ErrorCode, sentence: str) -> None:
        super().__init__(f"{error.name}: {sentence}")
        self.error = error
        self.sentence = sentence
