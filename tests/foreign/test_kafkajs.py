"""kafkajs on Node, installed by .ci/run without a lock file."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from logboat.testing import LocalCluster


@pytest.mark.processes
@pytest.mark.foreign
def test_kafkajs_produces_and_consumes_in_a_group(
    cluster: LocalCluster,
    fresh: Callable[[str], str],
    tool: Callable[[str], str],
    node_modules: Path,
) -> None:
    script = Path(__file__).with_name("kafkajs_roundtrip.js")
    done = subprocess.run(
        [tool("node"), str(script), cluster.bootstrap_servers, fresh("kafkajs"), fresh("g")],
        env={**os.environ, "NODE_PATH": str(node_modules)},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["read"] == result["sent"]
