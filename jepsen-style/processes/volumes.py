"""A file system for each node's data, which can lose its power or be full. Needs root.

ext4 on a loop device: after the shutdown ioctl nothing more reaches the device, not even what the
journal holds, and the next mount replays what was there. A tmpfs can only be full.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from ...testing import LocalCluster

VOLUME_BYTES = 256 << 20
EXT4, TMPFS = "ext4", "tmpfs"

_SHUTDOWN = 0x8004587D
"""`EXT4_IOC_SHUTDOWN`, _IOR('X', 125, __u32)."""
_WITHOUT_JOURNAL = 2
"""`EXT4_GOING_FLAGS_NOLOGFLUSH`: what the journal has not yet written is lost too."""

_BALLAST = "ballast"
_BLOCK = 4096
_MOUNT_TRIES = 50


class Volume:
    """One mounted file system; the node's data lie in a folder of it."""

    def __init__(self, kind: str, image: Path, mount_point: Path) -> None:
        self.kind = kind
        self.mount_point = mount_point
        self._image = image
        self._full = False
        mount_point.mkdir(parents=True)
        if kind == EXT4:
            with image.open("wb") as file:
                file.truncate(VOLUME_BYTES)
            # Nothing is reserved for root, whom a full disk must stop as well.
            run_command("mkfs.ext4", "-q", "-F", "-m", "0", str(image))
        self.mount()

    @property
    def data(self) -> Path:
        return self.mount_point / "data"

    def mount(self) -> None:
        """A journal is replayed here."""
        if self.kind == EXT4:
            run_command("mount", "-o", "loop,noatime", str(self._image), str(self.mount_point))
        else:
            options = f"size={VOLUME_BYTES}"
            run_command("mount", "-t", "tmpfs", "-o", options, "logboat", str(self.mount_point))
        if not self._full:
            # A power cut may have taken back that it was drained.
            self.drain()

    def unmount(self) -> None:
        """Nobody may use it; who was just killed is given a moment."""
        for number in range(_MOUNT_TRIES):
            try:
                run_command("umount", str(self.mount_point))
            except OSError:
                if number + 1 == _MOUNT_TRIES:
                    raise
                time.sleep(0.02)
            else:
                return

    def cut_power(self) -> None:
        """What is not on the device now never will be; every later write or sync fails. Then the
        file system has to be unmounted and mounted again."""
        fd = os.open(self.mount_point, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, _SHUTDOWN, struct.pack("I", _WITHOUT_JOURNAL))
        finally:
            os.close(fd)

    def fill(self, slack_bytes: int) -> None:
        """Up to this many free bytes, rounded to blocks."""
        self._full = True
        fd = os.open(self.mount_point / _BALLAST, os.O_WRONLY | os.O_CREAT)
        try:
            with suppress(OSError):
                os.posix_fallocate(fd, 0, max(_BLOCK, self._free() - slack_bytes))
            # The ballast's own metadata took some: the rest goes block by block.
            os.lseek(fd, 0, os.SEEK_END)
            with suppress(OSError):
                while self._free() > slack_bytes:
                    os.write(fd, bytes(_BLOCK))
        finally:
            os.close(fd)

    def drain(self) -> None:
        """The end of `fill`."""
        self._full = False
        with suppress(FileNotFoundError):
            (self.mount_point / _BALLAST).unlink()

    def _free(self) -> int:
        found = os.statvfs(self.mount_point)
        return found.f_bavail * found.f_frsize


class Volumes:
    """One for each node of a cluster that does not run; their data are moved onto them."""

    def __init__(self, cluster: LocalCluster, kind: str, folder: Path) -> None:
        self.kind = kind
        self._cluster = cluster
        self._by_node: dict[int, Volume] = {}
        folder.mkdir()
        for node_id in cluster.node_ids:
            mount_point = Path(cluster.folder.node_dir(node_id), "volume")
            cluster.undo_if_killed("umount", "--lazy", str(mount_point))
            volume = Volume(kind, folder / f"node-{node_id}", mount_point)
            self._by_node[node_id] = volume
            data = Path(cluster.data_dir(node_id))
            shutil.copytree(data, volume.data)
            shutil.rmtree(data)
            data.symlink_to(volume.data)
            run_command("sync", "--file-system", str(volume.mount_point))

    def __getitem__(self, node_id: int) -> Volume:
        return self._by_node[node_id]

    def give_back(self) -> None:
        """What is on them becomes plain files again; no node may run."""
        for node_id, volume in self._by_node.items():
            data = Path(self._cluster.data_dir(node_id))
            data.unlink()
            volume.drain()
            shutil.copytree(volume.data, data)
            # Lazily: whoever still looks at a file in there must not cost the run its verdict.
            run_command("umount", "--lazy", str(volume.mount_point))
            volume.mount_point.rmdir()
        self._by_node = {}


def why_no(kind: str) -> str | None:
    """What keeps this machine from having volumes of this kind; None when it can."""
    if os.geteuid() != 0:
        return "mounting needs root"
    with tempfile.TemporaryDirectory() as folder:
        try:
            volume = Volume(kind, Path(folder, "image"), Path(folder, "mounted"))
        except OSError as error:
            return str(error)
        try:
            if kind == EXT4:
                volume.cut_power()
        except OSError as error:
            return f"ext4 does not know the shutdown ioctl: {error.strerror}"
        finally:
            volume.unmount()
    return None


def run_command(*command: str, given: str = "") -> None:
    """With `given` on its standard input. Raises OSError with what it said."""
    try:
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise OSError(f"{command[0]} is not installed") from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise OSError(f"{command[0]}: {said[-1] if said else f'status {done.returncode}'}")
