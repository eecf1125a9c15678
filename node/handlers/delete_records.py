"""API key 21: DeleteRecords, versions 0-2. v2 is flexible."""

from __future__ import annotations

from ...wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from ..served import Call
from ..services import Services


async def handle(
    services: Services, request: DeleteRecordsRequest, call: Call
) -> DeleteRecordsResponse:
    return await services.replicas.delete_records(request)
