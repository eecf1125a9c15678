"""Documents that are written from code say what the code says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("program", ["protocol_table.py", "http_table.py"])
def test_tables_of_what_is_served_are_what_the_code_declares(program: str) -> None:
    command = [sys.executable, str(ROOT / "docs" / program), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"run docs/{program} again {done.stderr}"


TEST_NAME = re.compile(r"`(test_\w+)`")

RULES_WITH_TESTS = [
    *(f"B{number}" for number in range(1, 7)),
    *(f"C{number}" for number in range(1, 8)),
    *(f"D{number}" for number in range(1, 9)),
]


def existing_tests() -> set[str]:
    definition = re.compile(r"^\s*(?:async )?def (test_\w+)\(", re.MULTILINE)
    return {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in definition.findall(path.read_text())
    }


@pytest.mark.parametrize("page", ["rules.md", "holes.md"])
def test_every_test_that_a_page_names_exists(page: str) -> None:
    named = TEST_NAME.findall((ROOT / "docs" / page).read_text())
    assert named
    assert sorted(set(named) - existing_tests()) == []


def test_every_rule_of_brokers_logs_and_isr_lists_a_test_of_its_name() -> None:
    page = (ROOT / "docs" / "rules.md").read_text()
    for rule in RULES_WITH_TESTS:
        entry = re.search(rf"^- \*\*{rule}\*\* .*(?:\n  .*)*", page, re.MULTILINE)
        assert entry is not None, rule
        names = TEST_NAME.findall(entry[0])
        assert any(name.startswith(f"test_{rule.lower()}_") for name in names), rule


def test_every_hole_has_a_test_or_a_reason() -> None:
    page = (ROOT / "docs" / "holes.md").read_text()
    rows = re.findall(r"^\| (\d+) \| .+ \| (.+) \|$", page, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 22))
    assert all(TEST_NAME.search(here) or len(here) > 20 for _, here in rows)
