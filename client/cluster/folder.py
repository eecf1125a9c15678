"""Where things lie in a cluster's folder, and who may start nodes in it."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..failure import Failure

DEFAULT_DATA_DIR = "./logboat-data"
NODE_DIR = re.compile(r"node-[1-9][0-9]*")


@dataclass(frozen=True, slots=True)
class ClusterFolder:
    """Names inside the folder. `path` is absolute: node command lines hold it."""

    path: str

    @staticmethod
    def at(data_dir: str) -> ClusterFolder:
        return ClusterFolder(os.path.abspath(data_dir))

    @property
    def state_file(self) -> str:
        return os.path.join(self.path, "cluster.json")

    @property
    def secret_file(self) -> str:
        return os.path.join(self.path, "secret")

    @property
    def lock_file(self) -> str:
        return os.path.join(self.path, "cluster.lock")

    @property
    def chaos_history(self) -> str:
        """What was done to the nodes' processes on purpose."""
        return os.path.join(self.path, "chaos-history")

    def node_dir(self, node_id: int) -> str:
        return os.path.join(self.path, f"node-{node_id}")

    def node_dirs(self) -> list[str]:
        """The node folders that are there, whatever the state file says."""
        try:
            names = sorted(os.listdir(self.path))
        except FileNotFoundError:
            return []
        return [os.path.join(self.path, name) for name in names if NODE_DIR.fullmatch(name)]

    def node_config(self, node_id: int) -> str:
        return os.path.join(self.node_dir(node_id), "node.toml")

    def node_log(self, node_id: int) -> str:
        """Standard output and error of the node's process, one life after the other."""
        return os.path.join(self.node_dir(node_id), "node.log")

    def node_data(self, node_id: int) -> str:
        """The node's `log.dirs`."""
        return os.path.join(self.node_dir(node_id), "data")

    def is_left_by_a_crash(self, name: str) -> bool:
        """What an `up` leaves that was killed before there was a state file."""
        state_file = os.path.basename(self.state_file)
        return name == os.path.basename(self.lock_file) or name.startswith(f"{state_file}.")

    def exists(self) -> bool:
        return os.path.exists(self.state_file)

    @contextmanager
    def held_by_one_up(self) -> Iterator[None]:
        """Two `up` at the same time would start each node twice. The lock dies with the process."""
        try:
            descriptor = os.open(self.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Failure(f"cannot write to {self.path}: {error.strerror}") from error
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Failure(
                    f"another `logboat cluster up` looks after {self.path}; stop that one first"
                ) from None
            yield
        finally:
            os.close(descriptor)
