"""The suite is shared so that clusters are not beside clusters, and the end is not waited for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shares import APART, LONGEST_FIRST, TOGETHER, WITH_PROCESSES, next_share, share_of

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("path", [*WITH_PROCESSES, *TOGETHER, *APART, *LONGEST_FIRST])
def test_every_path_begins_that_of_some_tests(path: str) -> None:
    folder, _, name = path.rpartition("/")
    assert list((ROOT / folder).glob(f"{name}*")), path


def test_what_has_something_in_common_is_one_share() -> None:
    kcat, java = (f"tests/foreign/test_{name}.py::test_one[a::b]" for name in ("kcat", "java"))
    assert share_of(kcat) == share_of(java) == "tests/foreign/"
    assert share_of(f"{APART[0]}::test_one") == APART[0]
    assert share_of("tests/wire/test_crc.py::test_one") == "tests/wire/test_crc.py"


def test_one_worker_plays_with_processes_and_the_others_compute_until_one_kind_is_done() -> None:
    left = ["tests/wire/a", "tests/node/b", "tests/cluster_scope/c", "tests/foreign/"]
    taken: dict[str, list[str]] = {"gw0": [], "gw1": []}
    for worker in ("gw1", "gw0", "gw0", "gw0"):
        share = next_share(left, worker)
        left.remove(share)
        taken[worker].append(share)
    assert taken["gw1"] == ["tests/cluster_scope/c"]
    assert taken["gw0"] == ["tests/foreign/", "tests/node/b", "tests/wire/a"]
