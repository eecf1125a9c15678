"""Writes the tables of docs/http.md from the routes of v2 and v3; `--check` only compares.

python docs/http_table.py
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from logboat.node.http.confluent_v2.routes import ROUTES as V2
from logboat.node.http.confluent_v3 import refused
from logboat.node.http.confluent_v3.routes import ROUTES as V3

TARGET = Path(__file__).with_name("http.md")

Route = tuple[str, str, object]


def text(page: str) -> str:
    """The page with its tables made anew."""
    served = [route for route in V3 if route[2] is not refused.no_authorizer]
    answered_only = [route for route in V3 if route[2] is refused.no_authorizer]
    page = _with_table(page, "v2", V2)
    page = _with_table(page, "v3", served)
    return _with_table(page, "v3-refused", answered_only)


def _with_table(page: str, name: str, routes: Iterable[Route]) -> str:
    by_path: dict[str, list[str]] = {}
    for method, path, _ in routes:
        by_path.setdefault(path.replace("/v3/clusters/{cluster}", "..."), []).append(method)
    rows = "\n".join(f"| `{path}` | {', '.join(found)} |" for path, found in by_path.items())
    table = f"<!-- {name} -->\n| path | methods |\n|---|---|\n{rows}\n<!-- end -->"
    made, count = re.subn(
        rf"<!-- {name} -->.*?<!-- end -->", lambda _: table, page, count=1, flags=re.DOTALL
    )
    assert count == 1, f"the page has no place for the table {name}"
    return made


def main() -> int:
    page = TARGET.read_text()
    if sys.argv[1:] == ["--check"]:
        return 0 if page == text(page) else 1
    TARGET.write_text(text(page))
    return 0


if __name__ == "__main__":
    sys.exit(main())
