"""A history that is on disk line by line: a killed run leaves all up to its last moment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .history import History, Outcome
from .recorder import Recorder


class WrittenHistory(History):
    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    def invoke(self, process: int | str, function: str, argument: Any, time: int) -> int:
        self._recorder.invoke(int(process), function, argument, time)
        return super().invoke(process, function, argument, time)

    def complete(self, process: int | str, outcome: Outcome, result: Any, time: int) -> int:
        index = super().complete(process, outcome, result, time)
        function = self.function[index]
        self._recorder.complete(int(process), function, outcome, result, time)
        return index

    def observe(self, event: Mapping[str, Any]) -> None:
        self._recorder.observe(event["process"], event["f"], event["value"], event["time"])
        super().observe(event)
