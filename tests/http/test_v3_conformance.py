"""v3 against the document of its core: each operation answers as described, and no made-up request
of any of them makes the node fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from logboat.node.run import Node
from tests.http.documents import CHECKS, Operations, document
from tests.http.http_asker import Asker
from tests.http.serving_node import CLUSTER, serving_node

pytestmark = pytest.mark.asyncio(loop_scope="module")

C = "/clusters/{cluster_id}"
T = C + "/topics/{topic_name}"
P = T + "/partitions/{partition_id}"
B = C + "/brokers/{broker_id}"
G = C + "/consumer-groups/{consumer_group_id}"
M = G + "/consumers/{consumer_id}"
EXAMPLES = 3
"""Made-up requests for each operation; most of their price is the making."""


@pytest.fixture(scope="module")
def v3() -> Operations:
    return Operations.of(document("confluent-rest-v3-core.derived.openapi.yaml"))


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def serving(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Node, Asker]]:
    """With topic `t` of two partitions, and a group `g` that is two records behind."""
    async with serving_node(tmp_path_factory.mktemp("v3") / "data") as (node, asker):
        wanted = {"topic_name": "t", "partitions_count": 2, "replication_factor": 1}
        await asker.good("POST", f"{CLUSTER}/topics", wanted, content_type="application/json")
        records = {"records": [{"value": "aGk=", "partition": 0}] * 3}
        await asker.good("POST", "/topics/t", records)
        config = {"name": "i", "auto.offset.reset": "earliest", "auto.commit.enable": "false"}
        await asker.good("POST", "/consumers/g", config)
        instance = "/consumers/g/instances/i"
        await asker.good("POST", f"{instance}/subscription", {"topics": ["t"]})
        await asker.good("GET", f"{instance}/records?timeout=10000")
        offsets = {"offsets": [{"topic": "t", "partition": 0, "offset": 1}]}
        await asker.good("POST", f"{instance}/offsets", offsets)
        yield node, asker


def base_of(node: Node) -> str:
    assert node.addresses.http is not None
    return f"http://127.0.0.1:{node.addresses.http.port}/v3"


def conformance(v3: Operations, base: str) -> None:
    """Every operation of the document, with what it answers to a request that makes sense."""
    names = {
        "cluster_id": "test-cluster",
        "topic_name": "t",
        "partition_id": 0,
        "broker_id": 1,
        "consumer_group_id": "g",
    }

    def call(label: str, status: int = 200, body: Any = None, **more: Any) -> Any:
        query = more.pop("query", {})
        wanted = {key: value for key, value in {**names, **more}.items() if f"{{{key}}}" in label}
        response = v3.call(base, label, status, body, path_parameters=wanted, query=query)
        return response.json() if response.content else None

    call("GET /clusters")
    assert "controller" in call(f"GET {C}")
    for path in (f"{C}/brokers", B, f"{C}/brokers/-/configs", f"{B}/configs"):
        call(f"GET {path}")
    assert len(call(f"GET {B}/partition-replicas")["data"]) == 3  # the groups' topic, too
    for owner, name, value in (
        (f"{C}/broker-configs", "log.retention.ms", "86400000"),
        (f"{B}/configs", "log.retention.ms", "86400000"),
        (f"{T}/configs", "retention.ms", "86400000"),
    ):
        one = owner + "/{name}"
        call(f"GET {owner}")
        call(f"PUT {one}", 204, {"value": value}, name=name)
        assert call(f"GET {one}", name=name)["value"] == value
        call(f"POST {owner}:alter", 204, {"data": [{"name": name, "value": value}]})
        call(f"PUT {one}", 400, {"value": "x"}, name="no.such.setting")
        call(f"DELETE {one}", 204, name=name)
        call(f"POST {owner}:alter", 400, {"data": []})
    wanted = {"topic_name": "new", "partitions_count": 1, "replication_factor": 1}
    assert call(f"POST {C}/topics", 200, {**wanted, "validate_only": True})["partitions_count"] == 1
    assert call(f"POST {C}/topics", 201, wanted)["topic_name"] == "new"
    assert call(f"POST {C}/topics", 400, wanted)["error_code"] == 40002
    assert call(f"POST {C}/topics", 400, {**wanted, "topic_name": "/"})["error_code"] == 40002
    patched = call(f"PATCH {T}", 200, {"partitions_count": 3}, topic_name="new")
    assert patched["partitions_count"] == 3
    assert call(f"PATCH {T}", 400, {"partitions_count": 1})["error_code"] == 40002
    call(f"GET {C}/topics")
    call(f"GET {C}/topics/-/configs")
    call(f"GET {C}/topics/-/partitions/-/reassignment")
    assert call(f"GET {T}", query={"include_authorized_operations": True})["authorized_operations"]
    assert call(f"GET {T}", 404, topic_name="none")["error_code"] == 40403
    assert len(call(f"GET {T}/partitions")["data"]) == 2
    assert call(f"GET {T}/partitions", 404, topic_name="none")["error_code"] == 40403
    call(f"GET {T}/partitions/-/reassignment")
    assert call(f"GET {P}")["leader"]
    assert call(f"GET {P}", 404, partition_id=9)["error_code"] == 40403
    call(f"GET {P}/reassignment", 404)
    call(f"GET {P}/replicas")
    assert call(f"GET {P}/replicas/{{broker_id}}")["is_leader"] is True
    call(f"GET {P}/replicas/{{broker_id}}", 404, broker_id=9)
    produced = {"value": {"type": "STRING", "data": "x"}, "partition_id": 1}
    assert call(f"POST {T}/records", 200, produced)["value"] == {"type": "STRING", "size": 1}
    assert call(f"POST {T}/records", 404, produced, topic_name="none")["error_code"] == 40403
    assert call(f"DELETE {T}", 204, topic_name="new") is None
    assert call(f"DELETE {T}", 404, topic_name="new")["error_code"] == 40403
    groups = call(f"GET {C}/consumer-groups")["data"]
    assert [(group["consumer_group_id"], group["state"]) for group in groups] == [("g", "STABLE")]
    call(f"GET {G}")
    consumer = call(f"GET {G}/consumers")["data"][0]["consumer_id"]
    assert call(f"GET {M}", consumer_id=consumer)["client_id"] == "i"
    assert len(call(f"GET {M}/assignments", consumer_id=consumer)["data"]) == 2
    where = "{topic_name}/partitions/{partition_id}"
    call(f"GET {M}/assignments/{where}", consumer_id=consumer)
    summary = call(f"GET {G}/lag-summary")
    assert (summary["max_lag"], summary["total_lag"]) == (2, 2)
    assert summary["max_lag_consumer_id"] == consumer
    assert [row["lag"] for row in call(f"GET {G}/lags")["data"]] == [2]
    assert call(f"GET {G}/lags/{where}")["current_offset"] == 1
    acl = {
        "resource_type": "TOPIC",
        "resource_name": "t",
        "pattern_type": "LITERAL",
        "principal": "User:a",
        "host": "*",
        "operation": "READ",
        "permission": "ALLOW",
    }
    for label, body, query in (
        (f"GET {C}/acls", None, {}),
        (f"POST {C}/acls", acl, {}),
        (f"POST {C}/acls:batch", {"data": [acl]}, {}),
        (f"DELETE {C}/acls", None, {**acl, "principal": "User:a"}),
    ):
        assert call(label, 400, body, query=query)["error_code"] == 40002


async def test_every_operation_answers_as_its_document_says(
    v3: Operations, serving: tuple[Node, Asker]
) -> None:
    await asyncio.to_thread(conformance, v3, base_of(serving[0]))
    assert sorted(v3.asked) == sorted(v3.labels)
    assert len(v3.asked) == 48


def made_up(v3: Operations, label: str, base: str) -> Callable[[], None]:
    names: dict[str, Any] = {
        "cluster_id": "test-cluster",
        "topic_name": "fuzzed",
        "partition_id": 0,
        "broker_id": 1,
        "consumer_group_id": "g",
        "name": "retention.ms" if "/topics/" in label else "log.retention.ms",
        "consumer_id": "whoever",
    }
    fixed = {key: value for key, value in names.items() if f"{{{key}}}" in label}
    operation = v3[label]
    requests = operation.as_strategy(**({"path_parameters": fixed} if fixed else {}))

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def ask(data: st.DataObject) -> None:
        case = data.draw(requests)
        if isinstance(case.body, dict) and isinstance(case.body.get("partitions_count"), int):
            # A number that a document allows and a test's disk does not.
            case.body["partitions_count"] = min(case.body["partitions_count"], 3)
        response = case.call(base_url=base)
        checks = list(CHECKS)
        if response.status_code == 404:
            # What is not there: several operations leave it out of their document.
            checks = [CHECKS[0]]
        case.validate_response(response, checks=checks)

    return ask


async def test_no_request_that_the_document_allows_makes_the_node_fail(
    v3: Operations, serving: tuple[Node, Asker]
) -> None:
    node, asker = serving
    for label in v3.labels:
        # It may have been deleted by the one before.
        await asker.ask(
            "POST", f"{CLUSTER}/topics", {"topic_name": "fuzzed"}, content_type="application/json"
        )
        await asyncio.to_thread(made_up(v3, label, base_of(node)))
    assert (await asker.ask("GET", "/readyz")).json["ready"] is True
