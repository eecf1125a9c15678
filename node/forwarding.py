"""What a client wants of the controller: asked there, answered here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..wire import ApiKey, ErrorCode, Message
from .controller_client import ControllerUnavailable
from .services import Services

NOT_DONE = "No active controller could be reached; nothing was changed."
UNKNOWN = "The controller gave no answer in time; the change may have been made."


async def forward(
    services: Services,
    key: ApiKey,
    request: Message,
    *,
    timeout_ms: int | None,
    failed: Callable[[ErrorCode, str], Message],
) -> Message:
    """The controller's answer, or `failed(error, sentence)` when there was none in time.

    NOT_CONTROLLER says that nothing has happened, REQUEST_TIMED_OUT that nobody knows (RULES A5).
    Without a time limit of the client's it is `request.timeout.ms`.
    """
    if timeout_ms is None:
        timeout_ms = services.config.number("request.timeout.ms")
    deadline = asyncio.get_running_loop().time() + timeout_ms / 1_000
    try:
        return await services.controller.ask(key, request, deadline)
    except ControllerUnavailable as error:
        if error.may_have_happened:
            return failed(ErrorCode.REQUEST_TIMED_OUT, UNKNOWN)
        return failed(ErrorCode.NOT_CONTROLLER, NOT_DONE)
