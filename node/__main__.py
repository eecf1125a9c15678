"""`python -m logboat.node --config node.toml`: a node with the real clock, disk, chance and loop.

The only place that reads the environment, files outside the data directory, and signals.
Exit status: 0 stopped in order, 1 failed, 2 usage.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import os
import resource
import signal
import sys
from collections.abc import Callable, Mapping
from random import Random, SystemRandom
from typing import TYPE_CHECKING

from ..seam import Clock, Disk, Fatal, SystemClock
from .config import ConfigRefused, NodeConfig
from .config_file import read_settings, render_defaults
from .settings import KEY_PASSWORD, KEYSTORE, TRUSTSTORE

if TYPE_CHECKING:
    from ..raftlog import ChannelTls
    from ..seam.fault_switches import FaultSwitches

logger = logging.getLogger("logboat.node")

ADDRESSES_FILE = "addresses.json"
FAULTS_FILE = "injected-faults"
"""In the node's directory, of one that was started with faults."""


def main() -> int:
    arguments = _arguments()
    if arguments.print_config:
        print(render_defaults(), end="")
        return 0
    logging.basicConfig(
        level=os.environ.get("LOGBOAT_LOG_LEVEL", "INFO").upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    try:
        config = load(arguments.config, with_faults=arguments.with_faults)
    except ConfigRefused as error:
        return _failed(f"{arguments.config}: {error}")
    if arguments.check_config:
        return 0
    return run(config, report_to=os.path.join(os.path.dirname(arguments.config), ADDRESSES_FILE))


def load(path: str, *, with_faults: bool = False) -> NodeConfig:
    """The node's configuration, the cluster's secret and certificates. Raises ConfigRefused."""
    given = read_settings(_read(path).decode("utf-8", "replace"))
    if with_faults:
        given["faults.enable"] = "true"
    secret_file = given.get("cluster.secret.file")
    secret = _read(secret_file).strip() if secret_file else b""
    if secret_file and not secret:
        raise ConfigRefused(f"cluster.secret.file {secret_file} is empty")
    return NodeConfig.of(given, secret=secret, tls=_tls(given))


def _tls(given: Mapping[str, str]) -> ChannelTls | None:
    """What protects the channels between nodes, unless one of the files is not even named."""
    certificate, authorities = given.get(KEYSTORE), given.get(TRUSTSTORE)
    if not certificate or not authorities:
        return None
    from ..raftlog import ChannelTls  # Nobody else needs it to check a configuration.

    for path in (certificate, authorities):
        _read(path)  # OpenSSL does not say which file it cannot read.
    try:
        return ChannelTls.of_files(
            certificate=certificate, authorities=authorities, password=given.get(KEY_PASSWORD)
        )
    except OSError as error:
        raise ConfigRefused(
            f"{certificate} and {authorities} are no certificates in PEM that belong together: "
            f"{error.strerror or error}"
        ) from error


def run(config: NodeConfig, *, report_to: str) -> int:
    """Run the node to its end; the status of the process."""
    # What is loaded now stays: looking for garbage meanwhile would cost a tenth of the start.
    gc.disable()
    # Late, so that --print-config and a wrong configuration answer at once.
    from ..partitions.storage import DirectoryRefused, connections_within, open_files_within
    from ..seam.real_disk import RealDisk
    from .listener import CannotListen
    from .report import NodeAddresses
    from .run import run_node

    if ignored := config.without_effect:
        logger.warning("settings without effect here: %s", ", ".join(ignored))

    def on_listening(addresses: NodeAddresses) -> None:
        _write_atomically(report_to, json.dumps(addresses.as_document(os.getpid())))
        # As above. Little of it is garbage, so nobody looks for that in a turn of the loop.
        gc.freeze()
        gc.enable()

    # What lives now lives as long as the process: collections need not look at it (F1).
    gc.collect()
    gc.freeze()
    disk: Disk = RealDisk()
    clock: Clock = SystemClock()
    rng, switches = SystemRandom(), None
    if config.flag("faults.enable"):
        disk, clock, switches = _with_faults(config, disk, clock, rng)

    async def node() -> None:
        await run_node(
            config,
            disk,
            clock,
            rng,
            stop=_stop_on_signals(),
            on_listening=on_listening,
            on_fatal=_end_at_once,
            open_files=open_files_within(_descriptors()),
            most_connections=connections_within(_descriptors()),
            settle=_settle,
        )

    try:
        with asyncio.Runner(loop_factory=_loop_factory(switches)) as runner:
            runner.run(node())
    except (CannotListen, DirectoryRefused, Fatal) as error:
        return _failed(str(error))
    except OSError as error:
        return _failed(f"{error.filename or config.log_directory}: {error.strerror}")
    return 0


def _settle(is_due: Callable[[], bool]) -> None:
    """Full collections need not look at what lives when it is due (F1)."""

    def on_collection(phase: str, info: dict[str, int]) -> None:
        if phase == "stop" and info["generation"] == 1 and is_due():
            # What was young and dead is gone now.
            gc.freeze()

    gc.callbacks.append(on_collection)


def _descriptors() -> int:
    """How many the process may have (`ulimit -n`)."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def _stop_on_signals() -> asyncio.Event:
    """The first SIGTERM or SIGINT asks for an orderly stop, the second ends at once."""
    stop = asyncio.Event()

    def on_signal(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, on_signal, number)
    return stop


def _end_at_once(error: BaseException) -> None:
    """No cleaning up: after a broken invariant nothing that would still be written is trusted."""
    _failed(str(error) or type(error).__name__)
    sys.stderr.flush()
    os._exit(1)


def _with_faults(
    config: NodeConfig, disk: Disk, clock: Clock, rng: Random
) -> tuple[Disk, Clock, FaultSwitches]:
    """Disk and clock as the switches make them; what was broken is noted on those that are not."""
    from ..seam.fault_history import FaultHistory
    from ..seam.fault_switches import FaultSwitches
    from ..seam.faulty_clock import FaultyClock
    from ..seam.faulty_disk import FaultyDisk

    logger.warning("faults.enable: this node lets itself be cut off, paused and otherwise hurt")
    path = os.path.join(config.log_directory, FAULTS_FILE)
    switches = FaultSwitches(rng, FaultHistory(clock, disk, path))
    # A handler of the loop would not be called while a pause holds the loop.
    signal.signal(signal.SIGCONT, lambda _number, _frame: switches.wake())
    return FaultyDisk(disk, switches), FaultyClock(clock, switches), switches


def _loop_factory(switches: FaultSwitches | None) -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        from uvloop import Loop
    except ImportError:
        Loop = asyncio.SelectorEventLoop  # type: ignore[misc, assignment]
    if switches is None:
        return Loop
    from ..seam.faulty_network import faulty

    return faulty(Loop, switches)


def _failed(sentence: str) -> int:
    print(f"logboat node: {sentence}", file=sys.stderr)
    return 1


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise ConfigRefused(f"cannot read {path}: {error.strerror}") from error


def _write_atomically(path: str, text: str) -> None:
    temporary = f"{path}.tmp"
    with open(temporary, "w") as file:
        file.write(text + "\n")
    os.replace(temporary, path)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m logboat.node", description="Run one node.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--config", metavar="NODE.TOML", help="the node's settings")
    what.add_argument(
        "--print-config", action="store_true", help="print every setting with its default"
    )
    parser.add_argument(
        "--with-faults", action="store_true", help="as if the file said faults.enable (tests only)"
    )
    parser.add_argument(
        "--check-config", action="store_true", help="say whether the settings are legal, and end"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
