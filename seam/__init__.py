"""What reaches the outside: wall clock, disk, long work, and tasks that somebody awaits.

Production code reaches time, chance, network, disk and threads only through what it is given:

* time and network: the running asyncio loop (`loop.time`, `call_later`, `create_server`, ...);
* wall clock: a `Clock`, for record timestamps, retention and people only;
* chance: a `random.Random` handed to the constructor (`SystemRandom` in production);
* disk: a `Disk`, whose slow calls are awaited;
* long work: `offload(function)`, or a generator that pauses (`steps.py`).

Beside these stands what every part needs of the language: `@frozen`, the declaration of a value.

`jepsen-style/simulation` implements the same protocols on virtual time; nothing above this part can
tell the difference. Threads live nowhere else. This part imports nothing of ours.
"""

from .clock import Clock, SystemClock
from .disk import (
    Buffer,
    Disk,
    DiskLock,
    DiskLocked,
    File,
    read_file,
    replace_file,
    write_file_atomically,
)
from .fatal import Fatal, OnFatal, SyncFailed
from .frozen_values import frozen
from .listening import accept_no_more, more_doors
from .offload import offload
from .steps import all_at_once, with_pauses
from .tasks import TaskScope

__all__ = [
    "Buffer",
    "Clock",
    "Disk",
    "DiskLock",
    "DiskLocked",
    "Fatal",
    "File",
    "OnFatal",
    "SyncFailed",
    "SystemClock",
    "TaskScope",
    "accept_no_more",
    "all_at_once",
    "frozen",
    "more_doors",
    "offload",
    "read_file",
    "replace_file",
    "with_pauses",
    "write_file_atomically",
]
