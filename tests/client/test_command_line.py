"""The command line: exit statuses, where text goes, and what `--help` may cost."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from logboat.client.cli import app
from logboat.client.failure import ExitStatus

HEAVY = ("aiohttp", "rich", "http.client", "orjson", "logboat.node", "asyncio", "pydantic")


@pytest.fixture
def runner() -> CliRunner:
    return CliRunner()


@pytest.mark.parametrize("arguments", [("--help",), ("cluster", "--help"), ("profile", "list")])
def test_what_asks_no_node_imports_nothing_heavy(arguments: tuple[str, ...]) -> None:
    program = (
        "import sys\n"
        "from logboat.client.cli import main\n"
        f"sys.argv = ['logboat', *{arguments!r}]\n"
        "try:\n    main()\n"
        "except SystemExit:\n    pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stderr.strip() == "[]"
    assert ran.stdout


@pytest.mark.parametrize("arguments", [("--help",), ("chaos", "--help")])
def test_help_costs_little_more_than_importing_typer(arguments: tuple[str, ...]) -> None:
    def once(command: Sequence[str]) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *command], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # Processor time and in turns: whatever else the machine does slows both.
    costs = [
        (once(("-c", "import typer")), once(("-m", "logboat.client.entry", *arguments)))
        for _ in range(5)
    ]
    bare, helped = (min(column) for column in zip(*costs, strict=True))
    assert helped < 1.6 * bare


def test_ctrl_c_while_modules_are_loaded_is_no_traceback(tmp_path: Path) -> None:
    pressed = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n"
    (tmp_path / "typer.py").write_text(pressed)
    ended = subprocess.run(
        [sys.executable, "-m", "logboat.client.entry", "--version"],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert ended.returncode == -signal.SIGINT
    assert ended.stderr == ""


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (">/dev/full", "No space left on device"),
        (">&-", "standard output is closed"),
        ("| true", ""),
    ],
)
def test_output_that_goes_nowhere_is_one_sentence_at_most(
    tmp_path: Path, output: str, said: str
) -> None:
    command = f"{sys.executable} -m logboat.client.entry profile list {output}"
    ended = subprocess.run(
        command,
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path)},
    )
    assert ended.stderr == (f"logboat: {said}\n" if said else "")
    assert ended.returncode == (ExitStatus.FAILED if said else ExitStatus.GOOD)


def test_an_unknown_option_is_a_usage_error(runner: CliRunner) -> None:
    result = runner.invoke(app, ["cluster", "up", "--no-such-option"])
    assert result.exit_code == ExitStatus.USAGE
    assert result.stdout == ""


@pytest.mark.parametrize("nodes", ["0", "21", "three"])
def test_a_cluster_has_one_to_twenty_nodes(runner: CliRunner, nodes: str) -> None:
    assert runner.invoke(app, ["cluster", "up", "--nodes", nodes]).exit_code == ExitStatus.USAGE


def test_a_quorum_has_one_to_five_voters(runner: CliRunner) -> None:
    for voters in ("0", "6"):
        arguments = ["cluster", "up", "--nodes", "9", "--voters", voters]
        assert runner.invoke(app, arguments).exit_code == ExitStatus.USAGE


def test_data_dir_and_ephemeral_exclude_each_other(runner: CliRunner, tmp_path: Path) -> None:
    for command in ("up", "status", "down", "purge"):
        arguments = ["cluster", command, "--data-dir", str(tmp_path), "--ephemeral"]
        assert runner.invoke(app, arguments).exit_code == ExitStatus.USAGE


def test_node_wants_a_config_or_print_config(runner: CliRunner) -> None:
    assert runner.invoke(app, ["node"]).exit_code == ExitStatus.USAGE


@pytest.mark.parametrize("command", ["status", "down", "purge"])
def test_no_cluster_is_one_sentence_and_status_1(
    runner: CliRunner, tmp_path: Path, command: str
) -> None:
    result = runner.invoke(app, ["cluster", command, "--data-dir", str(tmp_path / "none")])
    assert result.exit_code == ExitStatus.FAILED
    assert result.stdout == ""
    assert result.stderr.startswith("logboat: there is no cluster in")
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "none").exists()


def test_a_damaged_state_file_is_one_sentence(runner: CliRunner, tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text("{")
    result = runner.invoke(app, ["cluster", "status", "--data-dir", str(tmp_path)])
    assert result.exit_code == ExitStatus.FAILED
    assert "damaged" in result.stderr


def test_status_of_a_stopped_cluster_is_down(runner: CliRunner, tmp_path: Path) -> None:
    node = {"id": 1, "pid": None, "kafka": "127.0.0.1:1", "quorum": "127.0.0.1:2"}
    state = {"version": 1, "cluster_id": "c", "ephemeral": False}
    state["nodes"] = [{**node, "http": "127.0.0.1:3"}]
    (tmp_path / "cluster.json").write_text(json.dumps(state))
    result = runner.invoke(app, ["cluster", "status", "--data-dir", str(tmp_path), "-o", "json"])
    assert result.exit_code == ExitStatus.GOOD
    document = json.loads(result.stdout)
    assert document["state"] == "down"
    assert document["data_dir"] == str(tmp_path)
    assert document["nodes"] == [
        {
            "id": 1,
            "pid": None,
            "state": "dead",
            "role": None,
            "kafka": "127.0.0.1:1",
            "http": "127.0.0.1:3",
            "quorum": "127.0.0.1:2",
            "data_dir": str(tmp_path / "node-1" / "data"),
        }
    ]


def test_a_folder_with_other_things_in_it_is_left_alone(runner: CliRunner, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    arguments = ["cluster", "up", "--any-port", "--data-dir", str(tmp_path)]
    result = runner.invoke(app, arguments)
    assert result.exit_code == ExitStatus.FAILED
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_a_data_dir_that_cannot_be_made_is_one_sentence(runner: CliRunner, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    arguments = ["cluster", "up", "--any-port", "--data-dir", str(tmp_path / "file" / "below")]
    result = runner.invoke(app, arguments)
    assert result.exit_code == ExitStatus.FAILED
    assert result.stderr.count("\n") == 1
