"""v2 against the document of Strimzi's bridge: each operation that is served answers as described,
and the flows of its guide run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
import schemathesis

from logboat.node.run import Node
from tests.http.documents import Operations, document
from tests.http.http_asker import BINARY, JSON, TEXT, V2, Asker
from tests.http.serving_node import serving_node

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOT_SERVED = {
    "GET /healthy",  # /healthz and /readyz stand for both
    "GET /ready",
    "GET /openapi",
    "GET /openapi/v3",
    "GET /metrics",  # served, in the format of Prometheus' current clients
}


@pytest.fixture(scope="module")
def v2() -> Operations:
    described = json.loads(document("strimzi-bridge.openapi.json").read_text())
    schemas = described["components"]["schemas"]
    # Its own example shows a list of names, as the bridge answers; the schema names a request's.
    schemas["SubscribedTopicList"]["properties"]["topics"] = {
        "type": "array",
        "items": {"type": "string"},
    }
    # Records without a key are read, too, and Confluent's clients look for it.
    schemas["RecordKey"]["oneOf"].append({"type": "null"})
    return Operations(schemathesis.openapi.from_dict(described))


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def serving(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Node, Asker]]:
    async with serving_node(tmp_path_factory.mktemp("bridge") / "data") as found:
        yield found


def flows(v2: Operations, base: str) -> None:
    topic = {"topicname": "my-topic"}
    first = {**topic, "partitionid": "0"}
    own = {"groupid": "my-group", "name": "my-consumer"}
    nobody = {"groupid": "my-group", "name": "nobody"}
    there = [{"topic": "my-topic", "partition": 0}]
    instance = "/consumers/{groupid}/instances/{name}"

    def call(label: str, status: int, body: Any = None, kind: str = V2, **more: Any) -> Any:
        response = v2.call(base, label, status, body, media_type=kind, **more)
        return response.json() if response.content else None

    def on(method: str, below: str, status: int, body: Any = None, **more: Any) -> Any:
        return call(f"{method} {instance}{below}", status, body, path_parameters=own, **more)

    call("GET /", 200)
    created = {"topic_name": "my-topic", "partitions_count": 2, "replication_factor": 1}
    call("POST /admin/topics", 201, created)
    assert call("GET /topics", 200) == ["my-topic"]
    call("GET /topics/{topicname}", 200, path_parameters=topic)
    call("GET /topics/{topicname}/partitions", 200, path_parameters=topic)
    call("GET /topics/{topicname}/partitions/{partitionid}", 200, path_parameters=first)

    # Produce
    headers = [{"key": "key1", "value": "dmFsdWUx"}]
    records = [{"key": "k", "value": {"v": 1}, "headers": headers}, {"value": [2], "partition": 0}]
    send = "POST /topics/{topicname}"
    to_partition = "POST /topics/{topicname}/partitions/{partitionid}"
    told = call(send, 200, {"records": records}, JSON, path_parameters=topic)
    assert len(told["offsets"]) == 2
    call(send, 200, {"records": [{"value": "aGk="}]}, BINARY, path_parameters=topic)
    one = {"records": [{"value": '"text"'}]}
    call(to_partition, 200, one, TEXT, path_parameters=first)
    call(send, 422, {"records": [{"key": "k"}]}, JSON, path_parameters=topic)
    call(to_partition, 422, {"records": []}, JSON, path_parameters=first)
    offsets = "GET /topics/{topicname}/partitions/{partitionid}/offsets"
    assert call(offsets, 200, path_parameters=first)["beginning_offset"] == 0

    # Consume: create, subscribe, poll, commit, seek, end
    wanted: dict[str, Any] = {
        "name": "my-consumer",
        "format": "json",
        "auto.offset.reset": "earliest",
    }
    wanted |= {"enable.auto.commit": False, "fetch.min.bytes": 1}
    create = "POST /consumers/{groupid}"
    group = {"groupid": "my-group"}
    call(create, 200, wanted, path_parameters=group)
    call(create, 409, wanted, path_parameters=group)
    call(create, 422, {"format": "xml"}, path_parameters=group)
    on("POST", "/subscription", 422, {})
    on("POST", "/subscription", 204, {"topics": ["my-topic"]})
    on("POST", "/assignments", 409, {"partitions": there})
    polled = on("GET", "/records", 406, headers={"Accept": BINARY})
    assert polled["error_code"] == 40601
    end = call(offsets, 200, path_parameters=first)["end_offset"]
    polled = on(
        "GET",
        "/records",
        200,
        headers={"Accept": JSON},
        query={"timeout": 10_000, "max_bytes": 1_000_000},
    )
    assert len(polled) == 2
    assert polled[0].keys() >= {"timestamp", "headers"}
    assert on("GET", "/subscription", 200)["topics"] == ["my-topic"]
    on("POST", "/offsets", 204, {"offsets": [{**there[0], "offset": end}]})
    on("POST", "/positions", 204, {"offsets": [{**there[0], "offset": 0}]})
    on("POST", "/positions/beginning", 204, {"partitions": there})
    on("POST", "/positions/end", 204, {"partitions": there})
    on("POST", "/positions", 404, {"offsets": [{"topic": "none", "partition": 0, "offset": 0}]})
    on("DELETE", "/subscription", 204)
    on("POST", "/assignments", 204, {"partitions": there})
    on("DELETE", "", 204)

    # What is not there
    for label, body in (
        (f"GET {instance}/records", None),
        (f"GET {instance}/subscription", None),
        (f"DELETE {instance}/subscription", None),
        (f"POST {instance}/subscription", {"topics": ["my-topic"]}),
        (f"POST {instance}/assignments", {"partitions": there}),
        (f"POST {instance}/offsets", {"offsets": []}),
        (f"POST {instance}/positions", {"offsets": []}),
        (f"POST {instance}/positions/beginning", {"partitions": there}),
        (f"POST {instance}/positions/end", {"partitions": there}),
        (f"DELETE {instance}", None),
    ):
        accept = "application/json" if label == f"DELETE {instance}/subscription" else V2
        answer = call(label, 404, body, path_parameters=nobody, headers={"Accept": accept})
        assert answer["error_code"] == 40403
    missing = {"topicname": "none", "partitionid": "0"}
    one_partition = "/partitions/{partitionid}"
    for label in ("", "/partitions", one_partition, f"{one_partition}/offsets"):
        needed = missing if "partitionid" in label else {"topicname": "none"}
        answer = call("GET /topics/{topicname}" + label, 404, path_parameters=needed)
        assert answer["error_code"] == 40401
    call(send, 404, {"records": [{"value": "aGk="}]}, BINARY, path_parameters={"topicname": "none"})
    call(to_partition, 404, {"records": [{"value": "aGk="}]}, BINARY, path_parameters=missing)


async def test_every_operation_that_is_served_answers_as_the_document_says(
    v2: Operations, serving: tuple[Node, Asker]
) -> None:
    address = serving[0].addresses.http
    assert address is not None
    await asyncio.to_thread(flows, v2, f"http://127.0.0.1:{address.port}")
    assert sorted(v2.asked) == sorted(set(v2.labels) - NOT_SERVED)
    assert len(v2.asked) == 20
