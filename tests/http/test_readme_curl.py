"""The README's examples of HTTP are run as they stand there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from logboat.testing import LocalCluster

pytestmark = pytest.mark.processes

README = Path(__file__).parents[2] / "README.md"
PRINTED_BY_README = "http://127.0.0.1:8082"

PRELUDE = """
set -euo pipefail
# A refused request must not pass for a good example.
curl() { command curl --fail-with-body --max-time 30 "$@" || { echo "curl $*: $?" >&2; exit 1; }; }
"""


def http_section() -> str:
    section = README.read_text().partition("### Over HTTP\n")[2].partition("\n### ")[0]
    (block,) = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    return str(block)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_readmes_curl_examples_work(logboat_cluster: LocalCluster) -> None:
    script = http_section()
    assert script.count("curl") > 10
    assert PRINTED_BY_README in script
    script = script.replace(PRINTED_BY_README, logboat_cluster.http_urls[1])
    ran = subprocess.run(
        ["bash", "-c", PRELUDE + script], capture_output=True, text=True, timeout=240, check=False
    )
    assert ran.returncode == 0, ran.stderr + ran.stdout
    lines = ran.stdout.splitlines()
    documents = [json.loads(line) for line in lines if line.startswith("{")]
    assert documents[0]["name"] == "orders"
    first, second = documents[2], documents[3]
    assert first["records"][0]["offset"] == second["records"][0]["offset"]
    assert documents[4]["outcome"] == "applied"
    assert sum(document.get("event") == "record" for document in documents) == 5
    assert sum(line.startswith("data: {") for line in lines) == 7
