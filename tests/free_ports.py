"""Ports that nodes of a test keep, also while they are down."""

from __future__ import annotations

import itertools
import os
import socket

FIRST_PORT, LAST_PORT = 14_000, 19_999
"""Below the ports of `LocalCluster`, and below those that the system hands out by itself: one of
these may be somebody's outgoing connection by the time a node comes back to it, or the dialer's
own end."""

PORTS_OF_WORKER = 300

_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_workers = (LAST_PORT + 1 - FIRST_PORT) // PORTS_OF_WORKER
_offsets = itertools.count(os.getpid() % PORTS_OF_WORKER)
"""From where two runs of the suite side by side are not likely to meet."""


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on; each comes again only after all the others of this worker."""
    first = FIRST_PORT + _worker % _workers * PORTS_OF_WORKER
    candidates = (first + offset % PORTS_OF_WORKER for offset in _offsets)
    tried = itertools.islice(candidates, PORTS_OF_WORKER)
    found = list(itertools.islice(filter(_is_free, tried), count))
    assert len(found) == count, "no free ports"
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As a listener does: a port in TIME_WAIT is free, one that is listened on is not.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
