"""API keys and error codes against the facts that they were written from, where at hand."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from logboat.wire import ApiKey, ErrorCode, all_apis, api

DATA = Path(os.environ.get("LOGBOAT_TEST_DATA", Path(__file__).parents[2] / ".." / "shared"))


def load(name: str) -> dict[str, Any]:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} is not at hand")
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def test_keys_versions_and_listeners_are_those_of_kafka() -> None:
    facts = load("kafka-api-versions.json")["apis"]
    assert [
        {
            "key": known.key,
            "name": known.name,
            "min": known.min_version,
            "max": known.max_version,
            "listeners": list(known.listeners),
            "flexible_from": known.flexible_from,
        }
        | ({"latest_version_unstable": True} if known.latest_unstable else {})
        for known in all_apis()
    ] == facts


def test_error_codes_are_those_of_kafka() -> None:
    facts = load("kafka-errors.json")["errors"]
    assert {
        (code.name, code.value, code.retriable, code.refreshes_metadata) for code in ErrorCode
    } == {
        (fact["name"], fact["code"], fact["retriable"], fact["refreshes_metadata"])
        for fact in facts
    }


def test_declarations_and_table_agree() -> None:
    for known in all_apis():
        for message in (known.request, known.response):
            versions = message.__versions__
            assert (versions.lowest, versions.highest) == (known.min_version, known.max_version)
            for version in range(known.min_version, known.max_version + 1):
                assert (version in message.__flexible__) == known.is_flexible(version)


def test_an_unstable_version_is_known_but_marked() -> None:
    assert api(ApiKey.INIT_PRODUCER_ID).max_version == 6
    assert api(ApiKey.INIT_PRODUCER_ID).max_stable_version == 5
    assert api(ApiKey.FETCH).max_stable_version == api(ApiKey.FETCH).max_version


def test_an_unknown_key_is_a_key_error() -> None:
    for key in (4, 7, 95, -1):
        with pytest.raises(KeyError):
            api(key)


def test_retriable_errors_speak() -> None:
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER.retriable
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER.refreshes_metadata
    assert not ErrorCode.OFFSET_OUT_OF_RANGE.retriable
    assert ErrorCode.UNKNOWN_SERVER_ERROR.value == -1
    assert all(code.message.endswith(".") for code in ErrorCode)
