"""How programs with other people's clients are started."""

from __future__ import annotations

import shutil
from pathlib import Path

HERE = Path(__file__).parent
NODE_MODULES = HERE.parents[1] / "node_modules"
"""Where .ci/run puts npm packages."""


def on_node(script: str) -> list[str] | None:
    """None without Node or kafkajs."""
    node = shutil.which("node")
    if node is None or not (NODE_MODULES / "kafkajs").is_dir():
        return None
    return ["env", f"NODE_PATH={NODE_MODULES}", node, str(HERE / script)]


def on_java(classes: Path | None, program: str) -> list[str] | None:
    """None without Java."""
    if classes is None:
        return None
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"]
    return ["java", *quick, "-cp", f"{classes}:{classes}/*", program]
