"""API key 49: AlterClientQuotas."""

from __future__ import annotations

from ..schema import Message, Struct, array, boolean, float64, int16, int32, string


class AlterClientQuotasRequest(Message, versions="0-1", flexible="1+"):
    """Set or remove client quotas."""

    class EntryData(Struct):
        class EntityData(Struct):
            entity_type: str = string()
            entity_name: str | None = string(nullable="0+")

        entity: list[EntityData] = array(EntityData)

        class OpData(Struct):
            key: str = string()
            value: float = float64()
            remove: bool = boolean()

        ops: list[OpData] = array(OpData)

    entries: list[EntryData] = array(EntryData)
    validate_only: bool = boolean()

    EntityData = EntryData.EntityData
    OpData = EntryData.OpData


class AlterClientQuotasResponse(Message, versions="0-1", flexible="1+"):
    """An error code for each entity."""

    throttle_time_ms: int = int32()

    class EntryData(Struct):
        error_code: int = int16()
        error_message: str | None = string(nullable="0+")

        class EntityData(Struct):
            entity_type: str = string()
            entity_name: str | None = string(nullable="0+")

        entity: list[EntityData] = array(EntityData)

    entries: list[EntryData] = array(EntryData)

    EntityData = EntryData.EntityData
