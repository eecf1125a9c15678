"""The engine's module globals that are replaced, and the check that they are the ones we know.

pysyncobj takes a transport, but reaches for its journal, codec, clock, chance, poller, snapshot
files and file checks through names in its module (RULES E4). The replacements are installed once
per process and hold no state, although several nodes may share a process, even one loop: each
node's own objects travel in its configuration, where the engine takes the arguments of these calls
from. Time is the running loop's.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

import pysyncobj.journal
import pysyncobj.monotonic
import pysyncobj.pickle
import pysyncobj.poller
import pysyncobj.serializer
import pysyncobj.syncobj as engine_module
import pysyncobj.transport
from pysyncobj.version import VERSION

from ..seam import Fatal

PINNED_VERSION = "0.3.17"


class SnapshotFile(Protocol):
    """Stands for the path of the engine's snapshot file, in its configuration."""

    def exists(self) -> bool: ...


class CommandCodec:
    """Stands for `pickle` in the engine: a call of the one replicated method, and nothing else."""

    METHOD_ID = 0

    @staticmethod
    def dumps(call: object, protocol: object = None) -> bytes:
        match call:
            case (CommandCodec.METHOD_ID, (bytes() as command,)):
                return command
        raise Fatal(f"the engine wants to encode {type(call).__name__}, which nobody asked for")

    @staticmethod
    def loads(data: bytes) -> tuple[int, tuple[bytes]]:
        return CommandCodec.METHOD_ID, (data,)

    @staticmethod
    def to_bytes(data: bytes) -> bytes:
        return data


class _Chance:
    """The engine draws an election timeout as `min + (max - min) * random()`.

    Here `max` is drawn, from the node's own chance; see `engine.Configuration`.
    """

    @staticmethod
    def random() -> float:
        return 1.0


class _NullPoller:
    """The engine's sockets are ours; there is nothing to poll."""

    def subscribe(self, *_: object) -> None: ...
    def unsubscribe(self, *_: object) -> None: ...
    def poll(self, timeout: float) -> None: ...


class _Paths:
    @staticmethod
    def isfile(path: SnapshotFile) -> bool:
        return path.exists()


class _Files:
    """Stands for `os`: the engine may only ask whether there is a snapshot."""

    path = _Paths


def _now() -> float:
    return asyncio.get_running_loop().time()


def _create_journal(journal: object) -> object:
    """The journal is what the configuration has for the path of its file."""
    return journal


def _create_poller(kind: str) -> _NullPoller:
    return _NullPoller()


def _create_serializer(
    file: object, batch: int, fork: bool, serializer: object, *_: object
) -> object:
    """The serializer is what the configuration has for the function of that name."""
    return serializer


def replacements() -> list[tuple[str, object, object]]:
    """(name, what pysyncobj 0.3.17 has there, what we put there).

    The originals of `os` and `random` are taken from where pysyncobj imports them itself, so that
    this part keeps its hands off both modules.
    """
    return [
        ("createJournal", pysyncobj.journal.createJournal, _create_journal),
        ("pickle", pysyncobj.pickle, CommandCodec),
        ("monotonicTime", pysyncobj.monotonic.monotonic, _now),
        ("random", pysyncobj.transport.random, _Chance),
        ("createPoller", pysyncobj.poller.createPoller, _create_poller),
        # Otherwise the 65,537th proposal raises although it was executed: the notifier's pipe is
        # full, because nobody polls it.
        ("PIPE_NOTIFIER_ENABLED", True, False),
        ("Serializer", pysyncobj.serializer.Serializer, _create_serializer),
        ("os", pysyncobj.serializer.os, _Files),
    ]


def install() -> None:
    """Replace the globals, or raise Fatal when this is not the engine that the guards know."""
    if VERSION != PINNED_VERSION:
        raise Fatal(f"pysyncobj {VERSION} is installed; the quorum needs {PINNED_VERSION} exactly")
    module: Any = engine_module
    for name, original, replacement in replacements():
        if not hasattr(module, name):
            raise Fatal(f"pysyncobj.syncobj has no {name}: not the release {PINNED_VERSION}")
        found = getattr(module, name)
        if found is not replacement and found is not original:
            raise Fatal(f"pysyncobj.syncobj.{name} was replaced by somebody else")
        setattr(module, name, replacement)
