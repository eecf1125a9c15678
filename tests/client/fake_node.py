"""Stands in for a node process where only starting, asking and stopping matter.

Run as `python fake_node.py logboat.node [--with-faults] --config PATH`. A file `behaviour` beside
the config makes it misbehave: `die` (ends at once), `unready`, `deaf` (ignores SIGTERM).
"""

import json
import os
import signal
import sys
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer


def _flat(table: dict[str, object], prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def main() -> None:
    config = sys.argv[-1]
    if "--with-faults" in sys.argv:
        print("fake node: with faults", flush=True)
    with open(config, "rb") as file:
        settings = _flat(tomllib.load(file))
    behaviour_file = os.path.join(os.path.dirname(config), "behaviour")
    behaviour = ""
    if os.path.exists(behaviour_file):
        with open(behaviour_file) as behaviour_text:
            behaviour = behaviour_text.read()
    if behaviour == "die":
        print("fake node: the disk is on fire", flush=True)
        sys.exit(1)
    if behaviour == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    node_id = settings["node.id"]

    class Handler(BaseHTTPRequestHandler):
        def _answer(self, status: int, body: object) -> None:
            payload = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def do_GET(self) -> None:
            if self.path == "/readyz" and behaviour == "unready":
                self._answer(503, {"ready": False, "reasons": ["no controller"]})
            else:
                self._answer(200, {"role": "leader" if node_id == 1 else "follower"})

        def do_POST(self) -> None:
            self._answer(200, {})

        def log_message(self, *_: object) -> None:
            pass

    host, _, port = str(settings["http.listener"]).rpartition(":")
    HTTPServer((host, int(port)), Handler).serve_forever()


main()
