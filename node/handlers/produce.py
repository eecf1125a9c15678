"""API key 0: Produce, versions 3-13.

v5 answers the log start offset, v8 errors per record, v9 is flexible, v10 answers the new leader
(KIP-951), v13 names topics by id (KIP-516). Versions 0-2 are advertised, for the sake of old
librdkafka (KAFKA-18659), and refused.
"""

from __future__ import annotations

from ...wire import ErrorCode
from ...wire.messages.produce import ProduceRequest, ProduceResponse
from ..served import Call, CloseConnection
from ..services import Services


async def handle(services: Services, request: ProduceRequest, call: Call) -> ProduceResponse | None:
    """None with acks=0: the client waits for no answer."""
    response = await services.replicas.produce(request, call.version)
    if request.acks != 0:
        return response
    for topic in response.responses:
        for partition in topic.partition_responses:
            if partition.error_code != ErrorCode.NONE:
                # The only way to tell a client that does not listen: it reconnects and asks anew.
                raise CloseConnection(
                    f"acks=0 for partition {partition.index} of {topic.name or topic.topic_id}: "
                    f"{ErrorCode(partition.error_code).name}"
                )
    return None
