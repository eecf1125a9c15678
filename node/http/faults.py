"""/api/v1/faults: what is broken on purpose at this node. Only where it was started with faults
(`faults.enable`, `--with-faults`); elsewhere 403.

Each fault ends by itself: a cluster that was hurt and forgotten heals.
"""

from __future__ import annotations

import re
from typing import Any

from aiohttp import web

from ...seam.faulty_network import LONGEST_PAUSE_S, FaultSwitches
from .bodies import json_object, read_body, refuse_unknown_keys, require_type
from .documents import Faults
from .errors import ApiError
from .guards import JSON_TYPE, json_response
from .keys import NODE

DEFAULT_FOR_S = 10.0
LONGEST_FOR_S = 600.0
LONGEST_DELAY_S = 60.0
_KEYS = ("delay", "for", "kind", "node")
_DURATION = re.compile(r"(\d{1,7})(ms|s)")


async def list_faults(request: web.Request) -> web.Response:
    return json_response(_document(_switches(request)))


async def inject_fault(request: web.Request) -> web.Response:
    """{"kind": "cut" | "delay" | "pause", "node": 2, "delay": "50ms", "for": "10s"}"""
    require_type(request, JSON_TYPE)
    switches = _switches(request)
    document = json_object(await read_body(request))
    refuse_unknown_keys(document, _KEYS)
    for_s = _seconds(document, "for", DEFAULT_FOR_S, LONGEST_FOR_S)
    match document.get("kind"):
        case "pause":
            switches.pause(min(for_s, LONGEST_PAUSE_S))
        case "cut":
            switches.cut_off(_other_node(request, document), for_s)
        case "delay":
            delay_s = _seconds(document, "delay", None, LONGEST_DELAY_S)
            switches.delay(_other_node(request, document), delay_s, for_s)
        case other:
            raise ApiError(422, f'"kind" is {str(other)[:40]!r}', hint="cut, delay or pause")
    return json_response(_document(switches))


async def heal_faults(request: web.Request) -> web.Response:
    _switches(request).heal()
    return web.Response(status=204)


def _switches(request: web.Request) -> FaultSwitches:
    switches = request.app[NODE].fault_switches()
    if switches is None:
        raise ApiError(
            403,
            "this node was started without faults",
            hint="start it with --with-faults, as `logboat cluster up --with-faults` does",
        )
    return switches


def _document(switches: FaultSwitches) -> Faults:
    return {
        "cut": switches.cut,
        "delays_ms": {str(node): round(s * 1000) for node, s in switches.delays.items()},
    }


def _other_node(request: web.Request, document: dict[str, Any]) -> int:
    node, node_id = request.app[NODE], document.get("node")
    if not isinstance(node_id, int) or isinstance(node_id, bool):
        raise ApiError(422, '"node" is no node id')
    if node_id == node.node_id:
        raise ApiError(422, "a node cannot be cut off from itself")
    if node_id not in node.image().brokers:
        raise ApiError(422, f"there is no node {node_id}", hint="GET /api/v1/cluster names them")
    return node_id


def _seconds(document: dict[str, Any], name: str, default: float | None, largest: float) -> float:
    text = document.get(name)
    if text is None and default is not None:
        return default
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ApiError(422, f'"{name}" is no time like 250ms or 5s')
    return min(int(match[1]) / (1 if match[2] == "s" else 1000), largest)
