"""API key 48: DescribeClientQuotas."""

from __future__ import annotations

from ..schema import Message, Struct, array, boolean, float64, int8, int16, int32, string


class DescribeClientQuotasRequest(Message, versions="0-1", flexible="1+"):
    """List client quotas by filter."""

    class ComponentData(Struct):
        entity_type: str = string()
        match_type: int = int8()
        match: str | None = string(nullable="0+")

    components: list[ComponentData] = array(ComponentData)
    strict: bool = boolean()


class DescribeClientQuotasResponse(Message, versions="0-1", flexible="1+"):
    """The quotas that match."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")

    class EntryData(Struct):
        class EntityData(Struct):
            entity_type: str = string()
            entity_name: str | None = string(nullable="0+")

        entity: list[EntityData] = array(EntityData)

        class ValueData(Struct):
            key: str = string()
            value: float = float64()

        values: list[ValueData] = array(ValueData)

    entries: list[EntryData] | None = array(EntryData, nullable="0+")

    EntityData = EntryData.EntityData
    ValueData = EntryData.ValueData
