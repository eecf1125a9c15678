"""Who keeps nodes running, and what an operator does about a disk that is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from ...wire.messages.add_raft_voter import AddRaftVoterRequest
from ..simulation import Drive, Host
from ..simulation.dice import stream
from .stage import Heal, Stage

RESTART_S = 0.5
"""A process that has ended itself is started again after this."""

TRIES = 4
"""Starts on a damaged disk that fail one after the other before it is replaced."""

WELL_S = 5.0
"""A process that has lived for this long has started well."""

PIN_S = 0.3
FOR_EVER = 1 << 60
ADD_RAFT_VOTER_VERSION = 0


class Supervisor:
    def __init__(self, stage: Stage, *, sync_s: float, most_damaged: int = 1) -> None:
        """`most_damaged`: disks, so that no promise is hurt."""
        self.unexplained: list[str] = []
        """How processes ended themselves without a fault that explains it."""
        self.damaged: dict[int, None] = {}
        """Nodes whose disk has lost what was synced."""
        self.unpinned: dict[int, None] = {}
        """Nodes whose new disk the quorum has not accepted yet (RULES B3)."""
        self._stage = stage
        self._sync_s = sync_s
        self._most_damaged = most_damaged
        self._numbers = {host: number for number, host in stage.cluster.hosts.items()}
        self._excused: dict[int, int] = {}
        """Node -> the last incarnation that may end itself, because its disk fails it."""
        self._holds: dict[int, int] = dict.fromkeys(stage.cluster.hosts, 0)
        """How many faults keep each node down now."""
        self._failed_starts: dict[int, int] = dict.fromkeys(stage.cluster.hosts, 0)
        self._drives = 0
        stage.world.on_host_ended = self._on_ended

    def stop(self, numbers: Sequence[int], how: Callable[[Host], None]) -> Heal:
        """Down they go, by `how`; the result lets them start again."""
        for number in numbers:
            self._holds[number] += 1
            how(self._stage.cluster.hosts[number])
        return partial(self._let_all_up, list(numbers))

    def excuse(self, number: int) -> None:
        """The disk fails this process or the one that starts next: it may end because of it."""
        self._excused[number] = self._stage.cluster.hosts[number].incarnation + 1

    def excuse_from_now_on(self, number: int) -> None:
        """Until `excuse` says otherwise: the disk goes on failing whatever starts on it."""
        self._excused[number] = FOR_EVER

    def damageable(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """These nodes; instead of one whose disk would be one too many, the last one damaged."""
        found = dict(self.damaged)
        chosen = []
        for number in numbers:
            if number not in found and len(found) >= self._most_damaged:
                number = list(found)[-1]
            found[number] = None
            chosen.append(number)
        return tuple(dict.fromkeys(chosen))

    def damage(self, number: int) -> None:
        """What was synced may be gone from this disk."""
        self.damaged[number] = None
        self._stage.watch.ledger.excuse(number)

    # Ends and starts

    def _on_ended(self, host: Host, error: BaseException | None) -> None:
        number = self._numbers.get(host)
        if number is None:
            return
        if error is not None:
            self._note_end(number, host, error)
        self._holds[number] += 1
        self._stage.world.at(RESTART_S, self._let_up, number)

    def _note_end(self, number: int, host: Host, error: BaseException) -> None:
        excused = host.incarnation <= self._excused.get(number, 0) or number in self.damaged
        if not excused:
            self.unexplained.append(f"end: {host.name} ended itself: {error!r}")
        self._failed_starts[number] += 1
        if (
            number in self.damaged
            and number not in self.unpinned
            and self._failed_starts[number] > TRIES
        ):
            # Not from inside the process that is ending.
            self._stage.world.at(0.0, self.replace_disk, number)

    def _let_all_up(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._let_up(number)

    def _let_up(self, number: int) -> None:
        host = self._stage.cluster.hosts[number]
        if self._holds[number] == 1 and host.alive:
            # It takes its time to stop in order.
            self._stage.world.at(RESTART_S, self._let_up, number)
            return
        self._holds[number] -= 1
        if not self._holds[number]:
            self._stage.cluster.start(number)
            self._stage.world.at(WELL_S, self._started_well, host, number, host.incarnation)

    def _started_well(self, host: Host, number: int, incarnation: int) -> None:
        if host.alive and host.incarnation == incarnation:
            self._failed_starts[number] = 0

    # Disks

    def replace_disk(self, number: int) -> None:
        """A new, empty one; what an operator then says to the quorum is said until it is heard."""
        host = self._stage.cluster.hosts[number]
        host.kill()
        self.damage(number)
        self._failed_starts[number] = 0
        self._drives += 1
        host.drive = Drive(
            stream(self._stage.world.seed, f"drive:{host.name}:{self._drives}"),
            sync_latency_s=self._sync_s,
        )
        watch = self._stage.watch
        watch.ledger.disks[number].attach(host.drive)
        watch.directories.pop(number, None)
        self.unpinned[number] = None
        self._pin(number)

    def _pin(self, number: int) -> None:
        """`logboat quorum replace-voter` (RULES B3)."""
        watch = self._stage.watch
        directory = watch.directories.get(number)
        image = watch.ledger.image
        if directory is not None and image is not None:
            if image.voter_directories.get(number) == directory:
                self.unpinned.pop(number, None)
                return
            controller_id = watch.active_controller()
            if controller_id is not None:
                node = watch.nodes[controller_id]
                host = self._stage.cluster.hosts[controller_id]

                request = AddRaftVoterRequest(
                    cluster_id=image.cluster_id, voter_id=number, voter_directory_id=directory
                )

                async def replace() -> None:
                    deadline = asyncio.get_running_loop().time() + 2.0
                    await node.controller.replace_voter(request, ADD_RAFT_VOTER_VERSION, deadline)

                host.spawn(replace())
        self._stage.world.at(PIN_S, self._pin, number)
