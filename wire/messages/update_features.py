"""API key 57: UpdateFeatures."""

from __future__ import annotations

from ..schema import Message, Struct, array, boolean, int8, int16, int32, string


class UpdateFeaturesRequest(Message, versions="0-2", flexible="0+"):
    """Raise or lower finalised feature levels."""

    timeout_ms: int = int32(default=60000)

    class FeatureUpdateKey(Struct):
        feature: str = string()
        max_version_level: int = int16()
        allow_downgrade: bool = boolean(versions="0")
        upgrade_type: int = int8(default=1, versions="1+")

    feature_updates: list[FeatureUpdateKey] = array(FeatureUpdateKey)
    validate_only: bool = boolean(versions="1+")


class UpdateFeaturesResponse(Message, versions="0-2", flexible="0+"):
    """Whether they were changed."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")

    class UpdatableFeatureResult(Struct):
        feature: str = string()
        error_code: int = int16()
        error_message: str | None = string(nullable="0+")

    results: list[UpdatableFeatureResult] = array(
        UpdatableFeatureResult, versions="0-1", ignorable=True
    )
