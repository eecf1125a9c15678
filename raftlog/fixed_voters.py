"""The set of voters is fixed by the first start of each of them (case R19).

The engine takes the majority of whatever its configuration lists. One file that lists fewer voters,
or others, would therefore make a second majority: the node would be elected without those whom its
log still belongs to. So each voter keeps, beside its journal, the ids with which it took part for
the first time, and never takes part with others. Addresses may change. Snapshots hold no voters:
an old one brings none back.

Beside it a directory keeps whether it has taken part at all: one that has not may stand for another
that was lost, and has no vote (RULES B3, `guards/new_directories.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from ..seam import Disk, Fatal, read_file, write_file_atomically

_FILE = "voters"
_JOINED = "joined"


async def hold_to_voters(disk: Disk, directory: str, voters: Iterable[int]) -> None:
    """Return when these are the voters of this directory, from now on at least.

    Raises Fatal, with both sets, when the directory has taken part in another quorum.
    """
    path = f"{directory}/{_FILE}"
    configured = b"%s\n" % ",".join(str(voter) for voter in sorted(voters)).encode()
    if not disk.exists(path):
        await write_file_atomically(disk, path, configured)
        return
    fixed = bytes(read_file(disk, path))
    if fixed != configured:
        raise Fatal(
            f"{path}: this node belongs to the quorum of voters {_shown(fixed)}, its configuration "
            f"says {_shown(configured)}. The set of voters cannot be changed"
        )


def has_joined(disk: Disk, directory: str) -> bool:
    """Whether this directory has ever been free to vote."""
    return disk.exists(f"{directory}/{_JOINED}")


async def remember_joining(disk: Disk, directory: str) -> None:
    """When it returns, the directory remembers. Raises Fatal."""
    path = f"{directory}/{_JOINED}"
    try:
        await write_file_atomically(disk, path, b"")
    except OSError as error:
        raise Fatal(f"{path} cannot be written: {error}") from error


def _shown(content: bytes) -> str:
    return content.decode(errors="replace").strip()
