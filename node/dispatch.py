"""From the bytes of a request to its handler, and from the handler's answer to bytes."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from ..wire import (
    BYTES_IN_ONE_STEP,
    ApiKey,
    Buffer,
    DecodeError,
    ErrorCode,
    Message,
    RequestHeader,
    Steps,
    api,
    decode_request_header,
    encode_response_in_steps,
)
from .caller import Caller
from .served import Call, CloseConnection, Handler, Reply, Served

if TYPE_CHECKING:
    from .services import Services

logger = logging.getLogger(__name__)


class Dispatcher:
    """The APIs of one listener. Holds no state of connections."""

    def __init__(
        self,
        services: Services,
        served: Mapping[ApiKey, Served],
        requests: Counter[ApiKey] | None = None,
    ) -> None:
        """`requests`: where to count those that are handled."""
        self._services = services
        self._served = served
        self._requests = Counter() if requests is None else requests
        self._handlers: dict[ApiKey, Handler] = {}

    def decode(
        self, frame: memoryview, caller: Caller
    ) -> Steps[tuple[Served, Call, Message | None]]:
        """What is asked; in one step where the frame is short. None as request: ApiVersions in a
        version that is not served.

        Raises CloseConnection for what Kafka closes a connection for.
        """
        try:
            header, position = decode_request_header(frame)
            served = self._served.get(header.api_key)  # type: ignore[call-overload]
            if served is None:
                raise CloseConnection(f"API key {header.api_key} is not served here")
            if not served.serves(header.api_version):
                return served, self._refused_version(header, caller), None
            known = api(header.api_key).request
            # Bytes behind the request are ignored, as in Kafka: librdkafka asks for all topics in
            # a flexible version with a count of four bytes, of which one is read.
            if len(frame) < BYTES_IN_ONE_STEP:
                request, _ = known.decode_from(frame, position, header.api_version)
            else:
                steps = known.decode_in_steps(frame, position, header.api_version)
                request, _ = yield from steps
        except DecodeError as error:
            raise CloseConnection(
                f"a request of {len(frame)} bytes is malformed: {error}"
            ) from None
        return served, Call(header, caller), request

    def _refused_version(self, header: RequestHeader, caller: Caller) -> Call:
        """Only ApiVersions is answered in a version that is not served, in version 0 (P01)."""
        if header.api_key != ApiKey.API_VERSIONS:
            raise CloseConnection(
                f"version {header.api_version} of {ApiKey(header.api_key).name} is not served"
            )
        return Call(
            RequestHeader(
                api_key=header.api_key,
                api_version=0,
                correlation_id=header.correlation_id,
                client_id=header.client_id,
            ),
            caller,
        )

    def handle(
        self, served: Served, call: Call, request: Message | None
    ) -> Reply | Coroutine[Any, Any, Reply]:
        """Start the handler: its reply, or what is to be awaited for it."""
        self._requests[served.key] += 1
        handler = self._handlers.get(served.key)
        if handler is None:
            handler = self._handlers[served.key] = served.load()
        return handler(self._services, request, call)

    def encode(self, call: Call, response: Message) -> Steps[list[Buffer]]:
        """In one step where the response is short."""
        return encode_response_in_steps(call.header, response)


def unexpected(call: Call, error: Exception) -> Message | None:
    """The answer after a handler failed: where the API has one error code for all, that one.

    The connection is closed after it either way: what the client asked for is in doubt.
    """
    logger.error(
        "%s %d from %s failed",
        ApiKey(call.header.api_key).name,
        call.version,
        call.caller,
        exc_info=error,
    )
    response = api(call.header.api_key).response()
    if not hasattr(response, "error_code"):
        return None
    response.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
    return response
