"""Text that is really text: the standard library's source."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator
from itertools import cycle, islice


def source_lines(count: int) -> list[bytes]:
    """`count` non-empty lines in a fixed order; from the top again when there are fewer."""
    return list(islice(cycle(list(islice(_all_lines(), count))), count))


def _all_lines() -> Iterator[bytes]:
    for path in _source_files(sysconfig.get_paths()["stdlib"]):
        with open(path, "rb") as file:
            yield from (line.rstrip(b"\r\n") for line in file if line.strip())


def _source_files(root: str) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        # Sorted in place: os.walk descends in this order. What is installed beside the standard
        # library differs from machine to machine.
        folders[:] = sorted(set(folders) - {"site-packages", "dist-packages", "__pycache__"})
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(".py"))
