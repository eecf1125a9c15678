"""What a controller API answers, and when the asker may pass it on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

Response = TypeVar("Response", covariant=True)


@dataclass(frozen=True, slots=True)
class ControllerAnswer(Generic[Response]):
    response: Response
    index: int
    """What the asker's own image must have reached before its client is answered (RULES A6);
    0 when the answer depends on no command."""
