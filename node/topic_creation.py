"""Topics that come into being because somebody named them."""

from __future__ import annotations

import asyncio

from ..groups import OFFSETS_TOPIC
from ..seam import TaskScope
from ..wire import ApiKey, ErrorCode
from ..wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from .config import NodeConfig
from .controller_client import ControllerClient, ControllerUnavailable

Creatable = CreateTopicsRequest.CreatableTopic

MAX_UNDER_WAY = 1_000
"""Topics that this node creates at the same time; others are told to ask again."""

CREATION_S = 10.0
"""How long a creation is tried, whoever waits for it."""


class TopicCreation:
    """Each topic is asked for once, however many clients name it at the same moment."""

    def __init__(
        self, *, config: NodeConfig, controller: ControllerClient, tasks: TaskScope
    ) -> None:
        self._config = config
        self._controller = controller
        self._tasks = tasks
        self._under_way: dict[str, asyncio.Task[ErrorCode]] = {}

    async def create(self, names: list[str], deadline: float) -> dict[str, ErrorCode]:
        """What became of each by `deadline` (loop time). This node's image has those that are NONE.

        LEADER_NOT_AVAILABLE: not decided yet, to be asked for again, as in Kafka.
        """
        tasks = {name: task for name in names if (task := self._creating(name)) is not None}
        if tasks:
            timeout = max(0.0, deadline - asyncio.get_running_loop().time())
            await asyncio.wait(tasks.values(), timeout=timeout)
        return {
            name: tasks[name].result()
            if name in tasks and tasks[name].done()
            else ErrorCode.LEADER_NOT_AVAILABLE
            for name in names
        }

    def _creating(self, name: str) -> asyncio.Task[ErrorCode] | None:
        task = self._under_way.get(name)
        if task is None and len(self._under_way) < MAX_UNDER_WAY:
            task = self._tasks.spawn(self._create(name), name=f"create topic {name}")
            self._under_way[name] = task
        return task

    async def _create(self, name: str) -> ErrorCode:
        deadline = asyncio.get_running_loop().time() + CREATION_S
        request = CreateTopicsRequest(
            topics=[self._described(name)], timeout_ms=int(CREATION_S * 1_000)
        )
        try:
            answer = await self._controller.ask(ApiKey.CREATE_TOPICS, request, deadline)
        except ControllerUnavailable:
            return ErrorCode.LEADER_NOT_AVAILABLE
        finally:
            del self._under_way[name]
        assert isinstance(answer, CreateTopicsResponse)
        error = ErrorCode(answer.topics[0].error_code)
        return ErrorCode.NONE if error == ErrorCode.TOPIC_ALREADY_EXISTS else error

    def _described(self, name: str) -> Creatable:
        if name != OFFSETS_TOPIC:
            return Creatable(name=name, num_partitions=-1, replication_factor=-1)
        config = self._config
        factor = config.number("offsets.topic.replication.factor")
        if "offsets.topic.replication.factor" not in config.given:
            # Kafka's default of 3 leaves a cluster of one or two nodes without groups.
            factor = min(factor, len(config.voters))
        settings = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": config.text("offsets.topic.segment.bytes"),
        }
        return Creatable(
            name=name,
            num_partitions=config.number("offsets.topic.num.partitions"),
            replication_factor=factor,
            configs=[
                Creatable.CreatableTopicConfig(name=key, value=value)
                for key, value in settings.items()
            ],
        )
