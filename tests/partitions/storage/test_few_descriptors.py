"""Case O05: a node holds more logs than the process may open files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from logboat.partitions.storage import MOST_OPEN_FILES, open_files_within

PROGRAM = Path(__file__).with_name("many_logs_program.py")


@pytest.mark.processes
def test_o05_many_logs_are_written_read_and_opened_again_with_few_descriptors(
    tmp_path: Path,
) -> None:
    """More logs than descriptors, as 2,000 partitions under `ulimit -n 1024`, and three files for
    each segment. The command for the full size: `many_logs_program.py <folder> 2000 1024`."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path / "data"), "130", "110"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("ok")


@pytest.mark.parametrize(
    ("descriptors", "open_files"), [(1_024, 512), (1 << 20, 512), (600, 300), (256, 128), (1, 1)]
)
def test_logs_take_half_of_few_descriptors_and_no_more_of_many(
    descriptors: int, open_files: int
) -> None:
    assert open_files_within(descriptors) == open_files <= MOST_OPEN_FILES
