"""Histories: what clients asked, what they were answered, and when, on one monotonic clock.

`History` holds operations in columns; `Recorder` writes one line an event while a run goes on, so
that a killed run leaves everything up to its last moment; `read_history` takes every format the
field uses. What a history *means* is left to the checkers.
"""

from .client_errors import outcome_of_error
from .history import NEVER, History, HistoryError, Operation, Outcome
from .reading import FORMATS, read_history, sniff_format
from .recorder import Recorder, write_edn

__all__ = [
    "FORMATS",
    "NEVER",
    "History",
    "HistoryError",
    "Operation",
    "Outcome",
    "Recorder",
    "outcome_of_error",
    "read_history",
    "sniff_format",
    "write_edn",
]
