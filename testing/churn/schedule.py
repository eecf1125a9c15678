"""What is done to the nodes, and when: drawn from a seed. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import cycle
from random import Random


class Fault(Enum):
    KILL = "kill"
    """SIGKILL; started again after a while."""
    PAUSE = "pause"
    """SIGSTOP for a while: longer than a session lasts, or shorter."""
    STOP = "stop"
    """SIGTERM: it leaves in order, and is started again."""
    KILL_ALL = "kill all"
    """SIGKILL for every node within a moment."""


@dataclass(frozen=True, slots=True)
class Step:
    fault: Fault
    node_id: int
    """Irrelevant for KILL_ALL."""
    away_seconds: float
    """Between the fault and its end."""
    rest_seconds: float
    """Before the next step."""


_SYNCED = (Fault.KILL, Fault.PAUSE, Fault.KILL, Fault.STOP, Fault.KILL, Fault.PAUSE, Fault.KILL_ALL)

# In page-cache mode a killed node leaves ISR and ELR (RULES C1): all at once is outside of what is
# promised, although a SIGKILL leaves the page cache where it is.
_PAGE_CACHE = (Fault.KILL, Fault.PAUSE, Fault.KILL, Fault.STOP)


def steps(node_ids: list[int], *, synced: bool, seed: int) -> Iterator[Step]:
    """Without end."""
    dice = Random(seed)
    for fault in cycle(_SYNCED if synced else _PAGE_CACHE):
        yield Step(
            fault=fault,
            node_id=dice.choice(node_ids),
            away_seconds=dice.uniform(0.2, 2.5),
            rest_seconds=dice.uniform(0.2, 1.5),
        )
