"""CRC-32C, from the C extension inside the package `crc32c`.

Importing the package itself also loads a command line and reads the package's version from the
metadata of what is installed: an eighth of a node's start. The extension alone is a shared library.
"""

from __future__ import annotations

from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Protocol

from .disk import Buffer


class Checksum(Protocol):
    def __call__(self, data: Buffer, checksum: int = 0, /) -> int: ...


def _from_extension() -> Checksum:
    package = find_spec("crc32c")
    if package is not None:
        where = package.submodule_search_locations
        extension = PathFinder.find_spec("crc32c._crc32c", where)
        if extension is not None and extension.loader is not None:
            module = module_from_spec(extension)
            extension.loader.exec_module(module)
            return module.crc32c  # type: ignore[no-any-return]
    # Packed in another way: then as its makers mean it.
    import crc32c

    return crc32c.crc32c


crc32c: Checksum = _from_extension()
"""The checksum of what the second argument covers followed by the first."""
