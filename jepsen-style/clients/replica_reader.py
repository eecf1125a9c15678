"""Reads every byte of one node's replicas, as a consumer near it may (KIP-392).

What nobody reads, nobody tests: a replica may hold a block that its disk has changed, and would
show it to the first consumer who comes by. At the end of a run somebody comes by, at each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from . import requests
from .batches import scan, values_of
from .cluster import RETRY_S, ClusterClient, NoAnswer, NotAsked
from .journal import Witness
from .primitives import Malformed
from .requests import Api, FetchPosition, TopicPartition, error_name

MAX_BYTES = 1 << 20
ANY_EPOCH = -1


async def read_replicas(
    client: ClusterClient, node_id: int, ends: Mapping[TopicPartition, int], witness: Witness
) -> None:
    """Return when all below `ends` was read from this node. Whatever it refuses is asked again: a
    replica that finds damage must be filled and serve in the end."""
    positions = {partition: witness.may_begin_at(partition) for partition in ends}
    while waiting := [partition for partition, at in positions.items() if at < ends[partition]]:
        wanted = {
            partition: FetchPosition(ANY_EPOCH, positions[partition]) for partition in waiting
        }
        body = requests.fetch_request(wanted, max_wait_ms=0, max_bytes=MAX_BYTES)
        try:
            answer = await client.ask(node_id, Api.FETCH, body)
        except (NotAsked, NoAnswer):
            await asyncio.sleep(RETRY_S)
            continue
        progress = False
        for partition, fetched in requests.fetch_response(answer).items():
            if error_name(fetched.error) == "OFFSET_OUT_OF_RANGE":
                # Retention goes on meanwhile.
                start = witness.may_begin_at(partition)
                positions[partition] = max(positions[partition], start)
            try:
                values_of(fetched.records)
            except Malformed as error:
                witness.violation(f"corrupt: node {node_id} served {partition.key} so: {error}")
                return
            for batch in scan(fetched.records):
                positions[partition] = batch.last_offset + 1
                progress = True
        if not progress:
            await asyncio.sleep(RETRY_S)
