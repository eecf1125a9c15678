"""The engine's module globals that are replaced, and the check that they are the ones we know.

pysyncobj takes a transport, but reaches for its journal, codec, clock, chance, poller, snapshot
files and file checks through names in its module (RULES E4). The replacements below are installed
once per process and hold no state: they ask which node is running. Several nodes may share a
process (simulation, tests), even one loop, so each call into the engine runs inside
`EngineContext.entered`, which is the only way to reach it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from random import Random
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
SNAPSHOT_FILE = "snapshot"
"""The name that the engine believes its snapshot file to have."""


class EngineContext(Protocol):
    """What the engine reaches for through its globals, for one node."""

    rng: Random

    def engine_journal(self) -> object:
        """An object with the interface of `pysyncobj.journal.Journal`."""
        ...

    def engine_serializer(self) -> object:
        """An object with the interface of `pysyncobj.serializer.Serializer`."""
        ...

    def has_snapshot(self) -> bool: ...


_running: ContextVar[EngineContext] = ContextVar("the node inside the engine")


@contextmanager
def entered(context: EngineContext) -> Iterator[None]:
    """Run the engine of this node. Not across an await."""
    token = _running.set(context)
    try:
        yield
    finally:
        _running.reset(token)


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
    @staticmethod
    def random() -> float:
        return _running.get().rng.random()


class _NullPoller:
    """The engine's sockets are ours; there is nothing to poll."""

    def subscribe(self, *_: object) -> None: ...
    def unsubscribe(self, *_: object) -> None: ...
    def poll(self, timeout: float) -> None: ...


class _Paths:
    @staticmethod
    def isfile(path: str) -> bool:
        return path == SNAPSHOT_FILE and _running.get().has_snapshot()


class _Files:
    """Stands for `os`: the engine may only ask whether there is a snapshot."""

    path = _Paths


def _now() -> float:
    return asyncio.get_running_loop().time()


def _create_journal(path: str) -> object:
    return _running.get().engine_journal()


def _create_poller(kind: str) -> _NullPoller:
    return _NullPoller()


def _create_serializer(*_: object) -> object:
    return _running.get().engine_serializer()


def _replacements() -> list[tuple[str, object, object]]:
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
    for name, original, replacement in _replacements():
        if not hasattr(module, name):
            raise Fatal(f"pysyncobj.syncobj has no {name}: not the release {PINNED_VERSION}")
        found = getattr(module, name)
        if found is not replacement and found is not original:
            raise Fatal(f"pysyncobj.syncobj.{name} was replaced by somebody else")
        setattr(module, name, replacement)
