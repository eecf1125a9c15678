"""What the controller APIs work with: the image, the sessions, and the way to a decision."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import cast

from ...raftlog import Applied, NotLeader
from ...seam import TaskScope, frozen
from ...wire import ErrorCode
from ..codec import encode_command
from ..commands import Command
from ..image import ClusterImage
from ..levels import level_of
from ..machine import MetadataMachine
from ..results import Item, Result, refuse
from ..sessions import Sessions
from ..topic_configs import BrokerSettings
from .quorum import Quorum
from .settings import ControllerSettings

NOT_ACTIVE = refuse(
    ErrorCode.NOT_CONTROLLER, "This is not the correct controller for this cluster."
)

UNKNOWN = refuse(
    ErrorCode.REQUEST_TIMED_OUT, "No answer from the quorum in time: it may still happen."
)
"""Never a false 'did not happen': the same error Kafka uses for an outcome nobody knows."""

NOT_IN_FIRST_ATTEMPT = Item(
    ErrorCode.REQUEST_TIMED_OUT, "The first attempt of this request did not name this topic."
)


@frozen
class Decided:
    """What became of a proposal, in terms of Kafka's errors."""

    result: Result
    index: int
    """Where it was decided; 0 when it was not."""


@dataclass(slots=True)
class Office:
    """Shared by the API files. `epoch` and `sessions` exist only while this node is active."""

    node_id: int
    voters: frozenset[int]
    quorum: Quorum
    machine: MetadataMachine
    rng: Random
    settings: ControllerSettings
    tasks: TaskScope
    epoch: int | None = None
    sessions: Sessions | None = None
    sessions_changed: asyncio.Event | None = None
    """Wakes the watcher when a session ends early."""

    @property
    def image(self) -> ClusterImage:
        return self.machine.image

    @property
    def active(self) -> bool:
        return self.epoch is not None

    def broker_settings(self) -> BrokerSettings:
        """The defaults that a new topic inherits, as this node has them."""
        return BrokerSettings.of(self.image, self.settings.default_configs)

    def own_deadline(self) -> float:
        """For commands that nobody asked for."""
        return asyncio.get_running_loop().time() + self.settings.own_command_timeout

    async def propose(self, make: Callable[[int], Command], deadline: float) -> Decided:
        """Have `make(controller epoch)` decided; by `deadline` (loop time) there is an answer.

        The epoch is read once: a command made in an office that has closed is refused by apply.
        """
        if self.epoch is None:
            return Decided(NOT_ACTIVE, 0)
        command = encode_command(make(self.epoch), level_of(self.image))
        outcome = await self.quorum.propose(command, deadline)
        if isinstance(outcome, Applied):
            return Decided(cast(Result, outcome.result), outcome.index)
        if isinstance(outcome, NotLeader):
            return Decided(NOT_ACTIVE, 0)
        return Decided(UNKNOWN, 0)
