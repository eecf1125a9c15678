"""A blocking client of a few requests, so that a measurement is not of a client's retries."""

from __future__ import annotations

import socket
import struct
from typing import TypeVar

from logboat.wire import ApiKey, Message, RequestHeader, decode_response, encode_request
from logboat.wire.messages.metadata import MetadataRequest, MetadataResponse
from logboat.wire.messages.produce import ProduceRequest, ProduceResponse
from logboat.wire.records import Record, encode_batch

Answer = TypeVar("Answer", bound=Message)

METADATA_VERSION = 9
PRODUCE_VERSION = 9


class WireClient:
    """One connection. Raises OSError when it cannot be had or breaks."""

    def __init__(self, host: str, port: int, *, timeout_s: float = 5.0) -> None:
        self._socket = socket.create_connection((host, port), timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0

    def close(self) -> None:
        self._socket.close()

    def ask(self, key: ApiKey, version: int, request: Message, kind: type[Answer]) -> Answer:
        self._correlation_id += 1
        header = RequestHeader(
            api_key=key,
            api_version=version,
            correlation_id=self._correlation_id,
            client_id="benchmark",
        )
        frame = b"".join(encode_request(header, request))
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)
        (length,) = struct.unpack(">i", self._receive(4))
        response = decode_response(header, self._receive(length))
        assert isinstance(response, kind)
        return response

    def _receive(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            piece = self._socket.recv(count - len(data))
            if not piece:
                raise ConnectionResetError("the node closed the connection")
            data += piece
        return bytes(data)

    def leader_of(self, topic: str, partition: int = 0) -> tuple[str, int] | None:
        """Where that partition's leader listens; the topic is created when it is not there."""
        topics = [MetadataRequest.MetadataRequestTopic(name=topic)]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=True)
        answer = self.ask(ApiKey.METADATA, METADATA_VERSION, request, MetadataResponse)
        brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        for found in answer.topics:
            for part in found.partitions:
                if part.partition_index == partition and not part.error_code:
                    return brokers.get(part.leader_id)
        return None

    def produce(self, topic: str, value: bytes, *, acks: int = -1, partition: int = 0) -> int:
        """One record; the error code."""
        batch = encode_batch([Record(value=value, timestamp=0)])
        data = ProduceRequest.TopicProduceData
        parts = [data.PartitionProduceData(index=partition, records=batch)]
        request = ProduceRequest(
            acks=acks, timeout_ms=5_000, topic_data=[data(name=topic, partition_data=parts)]
        )
        answer = self.ask(ApiKey.PRODUCE, PRODUCE_VERSION, request, ProduceResponse)
        return answer.responses[0].partition_responses[0].error_code
