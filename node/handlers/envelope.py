"""API key 58: Envelope, version 0, between nodes only: what an HTTP client wants of this node and
said to another one.

In Kafka it carries a client's request from broker to controller (KIP-590); here the request inside
is one of the HTTP part, which alone knows its form.
"""

from __future__ import annotations

from ...wire import ErrorCode
from ...wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from ..served import Call
from ..services import Services

CALL_SEPARATOR = b"\0"
"""Between the name of the part of HTTP that is asked, and its question."""


async def handle(services: Services, request: EnvelopeRequest, call: Call) -> EnvelopeResponse:
    part, _, question = bytes(request.request_data).partition(CALL_SEPARATOR)
    answer = services.http_calls.get(part.decode("ascii", "replace"))
    if answer is None:
        return EnvelopeResponse(error_code=ErrorCode.BROKER_NOT_AVAILABLE)
    return EnvelopeResponse(response_data=await answer(question))
