"""Stands in for a node process where only starting, asking and stopping matter.

Run as `python fake_node.py logboat.node [--with-faults] --config PATH`. A file `behaviour` beside
the config makes it misbehave: `die` (ends at once), `unready`, `deaf` (ignores SIGTERM).

Topics are files beside the cluster's folder, which all its nodes see. One called `refused` is, and
one called `late` has no leader when a node is asked for it first.
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

    topics = os.path.join(os.path.dirname(config), "..", "..", "fake-topics")
    looked_at: list[str] = []

    def topic_document(name: str) -> object:
        with open(os.path.join(topics, name)) as file:
            document = json.load(file)
        is_late = name == "late" and name not in looked_at
        looked_at.append(name)
        leader = -1 if is_late else 1
        local = {"role": "leader"} if node_id == leader else None
        numbers = range(document["partition_count"])
        partitions = [{"partition": n, "leader": leader, "local": local} for n in numbers]
        return {**document, "partitions": partitions}

    def create(wanted: dict[str, object]) -> tuple[int, object]:
        if wanted["name"] == "refused":
            return 422, {"message": "not a topic for us"}
        os.makedirs(topics, exist_ok=True)
        with open(os.path.join(topics, str(wanted["name"])), "x") as file:
            document = {
                "name": wanted["name"],
                "partition_count": wanted["partitions"] or 4,
                "replication_factor": wanted["replication_factor"] or 2,
            }
            json.dump(document, file)
        return 201, document

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
            elif self.path.startswith("/api/v1/topics/"):
                try:
                    self._answer(200, topic_document(os.path.basename(self.path)))
                except FileNotFoundError:
                    self._answer(404, {"error_code": 40403, "message": "no such topic"})
            else:
                self._answer(200, {"role": "leader" if node_id == 1 else "follower"})

        def do_POST(self) -> None:
            wanted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if wanted.get("validate_only"):
                self._answer(200, {})
            else:
                self._answer(*create(wanted))

        def log_message(self, *_: object) -> None:
            pass

    host, _, port = str(settings["http.listener"]).rpartition(":")
    HTTPServer((host, int(port)), Handler).serve_forever()


main()
