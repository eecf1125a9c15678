"""What is advertised is served, and what is served is declared."""

from __future__ import annotations

import pytest

from logboat.node.handlers import CLIENT_APIS, INTERNODE_APIS
from logboat.node.served import Served
from logboat.wire import api

ROWS = [*CLIENT_APIS.values(), *INTERNODE_APIS.values()]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.module}-{row.key.name}")
def test_every_served_api_has_a_handler_and_messages_for_its_versions(row: Served) -> None:
    assert callable(row.load())
    known = api(row.key)
    assert known.min_version <= row.min_version
    assert row.max_version <= known.max_stable_version


def test_every_stable_version_of_a_client_api_is_served() -> None:
    for row in CLIENT_APIS.values():
        known = api(row.key)
        assert (row.min_version, row.max_version) == (known.min_version, known.max_stable_version)


def test_a_handler_says_which_key_and_versions_it_serves() -> None:
    for row in CLIENT_APIS.values():
        if not row.advertised:
            continue
        doc = row.load().__globals__["__doc__"]
        assert doc.startswith(f"API key {row.key.value}: {api(row.key).name}, versions ")
        assert f"{row.min_version}-{row.max_version}" in doc.partition("\n\n")[0]
