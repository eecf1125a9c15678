"""A node in memory whose topics can be changed."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from logboat.metadata.config_definition import ConfigSource
from logboat.metadata.image import Endpoint
from logboat.node.http.ports import AnswerLost
from logboat.wire import ErrorCode
from logboat.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)
from logboat.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from logboat.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from logboat.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from logboat.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from tests.http.fake_http_node import FakeNode, topic

SET, DELETE = 0, 1


class ChangingNode(FakeNode):
    """Keeps the settings of `orders`; takes partitions and trims at every leader."""

    def __init__(self) -> None:
        super().__init__()
        self.settings: dict[str, str | None] = {}
        self.trimmed: list[tuple[int, int, int]] = []
        """(leader that was asked, partition, offset)."""
        self.at_time: dict[int, int] = {}
        """First offset of that time, in partitions that have records."""
        self.trim_error = ErrorCode.NONE
        self.trim_is_lost = False

    def set_http(self, node_id: int, endpoint: Endpoint | None) -> None:
        brokers = dict(self.current.brokers)
        brokers[node_id] = replace(brokers[node_id], http=endpoint)
        self.current = replace(self.current, brokers=MappingProxyType(brokers))

    async def list_offsets(
        self, node_id: int, request: ListOffsetsRequest, deadline: float
    ) -> ListOffsetsResponse:
        response = await super().list_offsets(node_id, request, deadline)
        (asked,) = request.topics[0].partitions
        if self.ends.get((request.topics[0].name, asked.partition_index)):
            found = response.topics[0].partitions[0]
            found.offset = self.at_time.get(asked.timestamp, found.offset)
        return response

    async def alter_configs(
        self, request: IncrementalAlterConfigsRequest, deadline: float
    ) -> IncrementalAlterConfigsResponse:
        (resource,) = request.resources
        answer = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
            resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        if any(change.name == "nonsense" for change in resource.configs):
            answer.error_code = ErrorCode.INVALID_CONFIG
            answer.error_message = "Unknown topic config name: nonsense"
        elif not request.validate_only:
            for change in resource.configs:
                if change.config_operation == SET:
                    self.settings[change.name] = change.value
                else:
                    del self.settings[change.name]
        return IncrementalAlterConfigsResponse(responses=[answer])

    async def describe_configs(
        self, node_id: int, request: DescribeConfigsRequest, deadline: float
    ) -> DescribeConfigsResponse:
        response = await super().describe_configs(node_id, request, deadline)
        response.results[0].configs += [
            DescribeConfigsResponse.DescribeConfigsResult.DescribeConfigsResourceResult(
                name=name, value=value, config_source=ConfigSource.DYNAMIC_TOPIC
            )
            for name, value in self.settings.items()
        ]
        return response

    async def create_partitions(
        self, request: CreatePartitionsRequest, deadline: float
    ) -> CreatePartitionsResponse:
        (asked,) = request.topics
        result = CreatePartitionsResponse.CreatePartitionsTopicResult(name=asked.name)
        if asked.count <= len(self.current.topics[asked.name].partitions):
            result.error_code = ErrorCode.INVALID_PARTITIONS
        else:
            self.add(topic(asked.name, leaders=[1] * asked.count))
        return CreatePartitionsResponse(results=[result])

    async def delete_records(
        self, node_id: int, request: DeleteRecordsRequest, deadline: float
    ) -> DeleteRecordsResponse:
        if self.trim_is_lost:
            raise AnswerLost
        (asked,) = request.topics[0].partitions
        self.trimmed.append((node_id, asked.partition_index, asked.offset))
        result = DeleteRecordsResponse.DeleteRecordsTopicResult.DeleteRecordsPartitionResult(
            partition_index=asked.partition_index,
            low_watermark=max(asked.offset, 0),
            error_code=self.trim_error,
        )
        return DeleteRecordsResponse(
            topics=[
                DeleteRecordsResponse.DeleteRecordsTopicResult(
                    name=request.topics[0].name, partitions=[result]
                )
            ]
        )
