"""Options of a fault that chance decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from .kinds import KEEPS, Option

DAMAGED_PLACES = ("log", "index", "checkpoint", "quorum")

APIS = (0, 1, 3, 22)
"""Which are lost: Produce, Fetch, Metadata, InitProducerId."""

Options = dict[str, Option]


def draw_options(dice: Random, kind: str) -> Options:
    """None for a kind that has none to draw."""
    draw = _DRAW.get(kind)
    return {} if draw is None else draw(dice)


def _isolate(dice: Random) -> Options:
    return {
        "direction": dice.choice(("both", "both", "in", "out")),
        "clients": dice.random() < 0.3,
    }


def _lost(dice: Random) -> Options:
    return {"api": dice.choice(APIS), "silently": dice.random() < 0.5}


def _place(dice: Random) -> Options:
    return {"place": dice.choice(DAMAGED_PLACES), "where": round(dice.random(), 3)}


_DRAW: Mapping[str, Callable[[Random], Options]] = {
    "isolate": _isolate,
    "halves": lambda dice: {"clients": dice.random() < 0.3},
    "delay": lambda dice: {"latency_ms": dice.randrange(200), "jitter_ms": dice.randrange(200)},
    "reorder": lambda dice: {"jitter_ms": dice.choice((30, 300))},
    "loss": lambda dice: {"chance": dice.choice((0.02, 0.1, 0.3))},
    "lost-responses": _lost,
    "lost-requests": _lost,
    "power-cut": lambda dice: {"keep": dice.choice(KEEPS)},
    "blackout": lambda dice: {"keep": dice.choice(KEEPS)},
    "failed-sync": lambda dice: {"after_syncs": dice.randrange(10)},
    "write-error": lambda dice: {"after_writes": dice.randrange(20)},
    "read-error": lambda dice: {"after_reads": dice.randrange(20)},
    "full-disk": lambda dice: {"slack_bytes": dice.choice((0, 700, 20_000))},
    "slow-disk": lambda dice: {"sync_ms": dice.choice((30, 100, 400))},
    "bit-flip": lambda dice: {**_place(dice), "bit": dice.randrange(8)},
    "misdirected-write": _place,
    "stale-block": _place,
    "clock-step": lambda dice: {"seconds": dice.choice((-3600.0, -5.0, 5.0, 3600.0))},
    "clock-skew": lambda dice: {"rate": dice.choice((0.9, 0.99, 1.01, 1.1))},
}
