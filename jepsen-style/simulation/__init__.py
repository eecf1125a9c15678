"""Whole clusters in one process, on virtual time, replayed exactly by a seed.

    with World(seed=7) as world:
        host = world.host("n1")
        host.start(lambda host: run_node(config, host.disk, host.clock, host.rng))
        world.run(10)
        host.kill()

A `Host` is a machine with a disk and clocks; the process on it is a coroutine on an event loop of
its own. `world.network` joins the hosts and breaks between them. `world.trace.digest()` is equal
for equal seeds, in any process and under any PYTHONHASHSEED; with `labelled=True`,
`first_difference` shows where two runs part.

Not simulated: TLS, UDP, files outside the host's disk, threads other than `offload`'s.
"""

from .clock import SimClock
from .dice import stream
from .disk import SimDisk
from .drive import DiskCall, DiskChange, Drive, Keep
from .errors import Deadlock, HostFailed, NotReached, SimEscape, SimKilled, WatchdogExpired
from .host import Host
from .link import Link
from .loop import HostLoop
from .network import Network
from .trace import Trace, first_difference
from .world import World

__all__ = [
    "Deadlock",
    "DiskCall",
    "DiskChange",
    "Drive",
    "Host",
    "HostFailed",
    "HostLoop",
    "Keep",
    "Link",
    "Network",
    "NotReached",
    "SimClock",
    "SimDisk",
    "SimEscape",
    "SimKilled",
    "Trace",
    "WatchdogExpired",
    "World",
    "first_difference",
    "stream",
]
