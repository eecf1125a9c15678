"""/api/v1/faults: what is broken on purpose at this node. Only where it was started with faults
(`faults.enable`, `--with-faults`); elsewhere 403.

Each fault ends by itself: a cluster that was hurt and forgotten heals.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Any

from aiohttp import web

from ...seam.fault_switches import LONGEST_PAUSE_S, FaultSwitches
from .bodies import json_object, node_id_in, read_body, refuse_unknown_keys, require_type
from .documents import Faults
from .errors import ApiError
from .guards import JSON_TYPE, json_response
from .keys import NODE

DEFAULT_FOR_S = 10.0
LONGEST_FOR_S = 600.0
LONGEST_DELAY_S = 60.0
LARGEST_OFFSET_S = 3650 * 86_400.0
LONGEST_NAME = 100
"""Characters of who asked."""

_KINDS = {
    # kind: what it needs beside `for` and `by`
    "partition": ("node",),
    "delay": ("node", "delay"),
    "drop": ("node", "chance"),
    "pause": (),
    "disk-full": (),
    "clock": ("offset",),
}
_ALWAYS = ("kind", "for", "by")
_DURATION = re.compile(r"(\d{1,9})(ms|s|m|h)")
_OFFSET = re.compile(r"([+-]?)(\d{1,9})(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


async def list_faults(request: web.Request) -> web.Response:
    return json_response(_document(_switches(request)))


async def fault_history(request: web.Request) -> web.Response:
    """The last ones, those of earlier lives of this node among them."""
    faults = _switches(request).history.entries()
    return json_response({"faults": [asdict(one) for one in faults]})


async def inject_fault(request: web.Request) -> web.Response:
    """{"kind": "delay", "node": 2, "delay": "50ms", "for": "10s", "by": "somebody"}"""
    require_type(request, JSON_TYPE)
    switches = _switches(request)
    document = json_object(await read_body(request))
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ApiError(422, f'"kind" is {str(kind)[:40]!r}', hint=f"one of {', '.join(_KINDS)}")
    refuse_unknown_keys(document, [*_ALWAYS, *_KINDS[kind]])
    by = _by(request, document)
    for_s = _seconds(document, "for", DEFAULT_FOR_S, LONGEST_FOR_S)
    node, amount = None, None
    match kind:
        case "pause":
            for_s = min(for_s, LONGEST_PAUSE_S)
            switches.pause(for_s)
        case "partition":
            node = _other_node(request, document)
            switches.cut_off(node, for_s)
        case "delay":
            node, amount = _other_node(request, document), document.get("delay")
            switches.delay(node, _seconds(document, "delay", None, LONGEST_DELAY_S), for_s)
        case "drop":
            node, chance = _other_node(request, document), _chance(document)
            amount = f"{chance:.0%}"
            switches.lose(node, chance, for_s)
        case "disk-full":
            switches.fill_disk(for_s)
        case "clock":
            offset_ms, amount = _offset_ms(document), document.get("offset")
            switches.shift_clock(offset_ms, for_s)
    switches.history.note(kind, for_s, by, node=node, amount=amount)
    return json_response(_document(switches))


async def heal_faults(request: web.Request) -> web.Response:
    switches = _switches(request)
    switches.heal()
    switches.history.healed()
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
        "losses": {str(node): chance for node, chance in switches.losses.items()},
        "disk_full": switches.disk_is_full,
        "clock_offset_ms": switches.clock_offset_ms,
    }


def _other_node(request: web.Request, document: dict[str, Any]) -> int:
    node, node_id = request.app[NODE], node_id_in(document, "node")
    if node_id == node.node_id:
        raise ApiError(422, "a node cannot be cut off from itself")
    if node_id not in node.image().brokers:
        raise ApiError(422, f"there is no node {node_id}", hint="GET /api/v1/cluster names them")
    return node_id


def _by(request: web.Request, document: dict[str, Any]) -> str:
    by = document.get("by", request.remote or "somebody")
    if not isinstance(by, str) or not 0 < len(by) <= LONGEST_NAME or not by.isprintable():
        raise ApiError(422, f'"by" is no name of at most {LONGEST_NAME} characters')
    return by


def _seconds(document: dict[str, Any], name: str, default: float | None, largest: float) -> float:
    text = document.get(name)
    if text is None and default is not None:
        return default
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ApiError(422, f'"{name}" is no time like 250ms, 5s or 2m')
    return min(int(match[1]) * _SECONDS[match[2]], largest)


def _chance(document: dict[str, Any]) -> float:
    chance = document.get("chance")
    if not isinstance(chance, int | float) or isinstance(chance, bool) or not 0 < chance <= 1:
        raise ApiError(422, '"chance" is no number above 0 and up to 1')
    return float(chance)


def _offset_ms(document: dict[str, Any]) -> int:
    text = document.get("offset")
    match = _OFFSET.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ApiError(422, '"offset" is no time like +30s, -2h or +1d')
    seconds = int(match[2]) * _SECONDS[match[3]]
    if seconds > LARGEST_OFFSET_S:
        raise ApiError(422, '"offset" is more than ten years')
    return round(seconds * (-1000 if match[1] == "-" else 1000))
