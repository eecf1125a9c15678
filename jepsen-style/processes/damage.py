"""Files of a node that does not run, hurt as the simulation hurts them, or all of them gone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from random import Random

from ..schedule import Fault
from ..schedule.damage import changed, is_at


def damage(data: Path, fault: Fault, dice: Random) -> Path | None:
    """Change bytes in one file of this data directory; returns it, None when there is none."""
    files = {path: content for path in files_of(data, fault) if (content := written(path))}
    if not files:
        return None
    path = dice.choice(list(files))
    other = files[dice.choice(list(files))]
    position, new = changed(fault, files[path], other, dice)
    with path.open("r+b") as file:
        file.seek(position)
        file.write(new)
        file.flush()
        # Or a power cut takes it back.
        os.fsync(file.fileno())
    return path


def files_of(data: Path, fault: Fault) -> list[Path]:
    place = str(fault.option("place"))
    names = sorted(path.relative_to(data).as_posix() for path in data.rglob("*") if path.is_file())
    return [data / name for name in names if is_at(name, place)]


def written(path: Path) -> bytes:
    """Without the zeros that a file was filled with before it is written."""
    return path.read_bytes().rstrip(b"\0")


def wipe(data: Path) -> None:
    """The directory stays, as the mount point of a new disk does."""
    for path in data.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
