"""The engine is the one that the guards know, or the node does not start."""

from __future__ import annotations

import pysyncobj.syncobj as engine_module
import pytest

from logboat.raftlog import globals as engine_globals
from logboat.raftlog.engine import Voter
from logboat.raftlog.globals import CommandCodec
from logboat.seam import Fatal


def test_installing_twice_is_the_same_as_once() -> None:
    engine_globals.install()
    engine_globals.install()
    module = engine_module
    assert module.pickle is CommandCodec
    assert module.PIPE_NOTIFIER_ENABLED is False


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_globals, "VERSION", "0.3.18")
    with pytest.raises(Fatal, match=r"0\.3\.18"):
        engine_globals.install()


@pytest.mark.parametrize(
    "name",
    [
        "createJournal",
        "pickle",
        "monotonicTime",
        "random",
        "createPoller",
        "PIPE_NOTIFIER_ENABLED",
        "Serializer",
        "os",
    ],
)
def test_a_global_that_is_missing_or_foreign_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(engine_module, name, object())
        with pytest.raises(Fatal, match=name):
            engine_globals.install()
    with monkeypatch.context() as patched:
        patched.delattr(engine_module, name)
        with pytest.raises(Fatal, match=name):
            engine_globals.install()


def test_the_codec_knows_one_call_and_nothing_else() -> None:
    assert CommandCodec.dumps((0, (b"command",))) == b"command"
    assert CommandCodec.loads(b"command") == (0, (b"command",))
    for other in (["add", "node"], 7, (1, (b"x",)), (0, (b"x", b"y")), (0, ("text",))):
        with pytest.raises(Fatal):
            CommandCodec.dumps(other)


def test_voters_hash_to_their_number_so_that_sets_of_them_iterate_alike() -> None:
    assert [hash(Voter(number)) for number in (1, 2, 3)] == [1, 2, 3]
    assert Voter(2) == Voter(2)
    assert Voter(2) != Voter(3)
    assert str(Voter(2)) == "2"
