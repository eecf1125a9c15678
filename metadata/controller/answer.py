"""What a controller API answers, and when the asker may pass it on."""

from __future__ import annotations

from typing import Generic, TypeVar

from ...seam import frozen

Response = TypeVar("Response", covariant=True)


@frozen
class ControllerAnswer(Generic[Response]):
    response: Response
    index: int
    """What the asker's own image must have reached before its client is answered (RULES A6);
    0 when the answer depends on no command."""
