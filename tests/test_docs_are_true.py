"""Documents that are written from code say what the code says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_protocol_table_is_what_the_handlers_declare() -> None:
    program = [sys.executable, str(ROOT / "docs" / "protocol_table.py"), "--check"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"run docs/protocol_table.py again {done.stderr}"
