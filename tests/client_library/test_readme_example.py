"""The README's Python is run as it stands there."""

from __future__ import annotations

import asyncio
import re
import textwrap
from pathlib import Path

import pytest

from logboat.client import Client
from logboat.testing import LocalCluster

README = Path(__file__).resolve().parents[2] / "README.md"


def example(heading: str) -> str:
    _, _, after = README.read_text().partition(heading)
    found = re.search(r"```python\n(.*?)```", after, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_client_of_the_readme(
    logboat_node: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    url = logboat_node.http_urls[0]

    async def make_topic() -> None:
        async with Client(url) as client:
            await client.admin.topics.create("orders", partitions=1)

    asyncio.run(make_topic())
    code = example("### In Python").replace("http://127.0.0.1:8082", url)
    scope: dict[str, object] = {}
    exec(f"async def main():\n{textwrap.indent(code, '    ')}", scope)
    asyncio.run(scope["main"]())  # type: ignore[operator]
    assert capsys.readouterr().out == "0\n"


def test_the_ten_lines_for_other_suites(logboat_node: LocalCluster) -> None:
    scope: dict[str, object] = {}
    exec(example("### In your own tests"), scope)
    scope["test_orders_are_taken"](logboat_node)  # type: ignore[operator]
