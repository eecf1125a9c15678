"""Times said as `-5m`: so long ago."""

from __future__ import annotations

import re
import time

_AGO = re.compile(r"-(\d+)(ms|s|m|h|d)")
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def ago_ms(text: str) -> int | None:
    """Unix milliseconds; None when the text says no such time."""
    ago = _AGO.fullmatch(text)
    return None if ago is None else int(time.time() * 1000) - int(ago[1]) * _UNIT_MS[ago[2]]
