"""A seed replays a run exactly: in one process, in two, under any PYTHONHASHSEED."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

from logboat.jepsen_style.simulation import Host, Trace, World, first_difference
from logboat.seam import offload


async def gossip(host: Host) -> None:
    """Three nodes that send, store, sync and wait in random order, with sets on their way."""
    names = [name for name in host.world.hosts if name != host.name]
    file = host.disk.open("log", create=True)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                file.append([line])
                await file.sync()
                writer.write(b"ok\n")
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    await asyncio.start_server(serve, None, 1)

    async def talk(name: str) -> None:
        while True:
            try:
                reader, writer = await asyncio.open_connection(name, 1)
                while True:
                    writer.write(f"{host.name} {host.rng.random()}\n".encode())
                    if not await reader.readline():
                        break
                    await asyncio.sleep(host.rng.random() * 0.02)
                writer.close()
            except OSError:
                await asyncio.sleep(0.1)
            await offload(lambda: None)

    tasks = {asyncio.create_task(talk(name)) for name in names}
    await asyncio.wait(tasks)


def simulate(seed: int, *, labelled: bool = False) -> Trace:
    with World(seed, labelled=labelled) as world:
        hosts = [world.host(name) for name in ("n1", "n2", "n3")]
        for host in hosts:
            host.start(gossip)
        world.run(1)
        hosts[0].kill()
        world.network.partition([hosts[1]], [hosts[2]])
        world.run(0.5)
        world.network.heal()
        hosts[0].start(gossip)
        hosts[2].pause()
        world.run(0.5)
        hosts[2].resume()
        hosts[1].power_off()
        world.run(0.5)
        hosts[1].start(gossip)
        world.run(1)
    return world.trace


def test_a_seed_replays_exactly_and_another_seed_differs() -> None:
    assert simulate(7).digest() == simulate(7).digest()
    assert simulate(7).digest() != simulate(8).digest()


def test_two_processes_with_two_hash_seeds_agree() -> None:
    script = (
        "import importlib.util as u, sys\n"
        "spec = u.spec_from_file_location('determinism', sys.argv[1])\n"
        "module = u.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "print(module.simulate(7).digest())\n"
    )

    def digest(hash_seed: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", script, __file__],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout.strip()

    assert digest("0") == digest("1") == simulate(7).digest()


def test_labels_do_not_change_the_digest() -> None:
    assert simulate(7, labelled=True).digest() == simulate(7).digest()


def test_the_first_difference_of_two_runs_is_shown_with_what_came_before() -> None:
    one, same, other = (simulate(seed, labelled=True) for seed in (7, 7, 8))
    assert first_difference(one, same) is None
    difference = first_difference(one, other)
    assert difference is not None
    assert "of one:" in difference
    assert "of other:" in difference


def test_a_changed_byte_on_the_wire_or_on_disk_changes_the_digest() -> None:
    def run(message: bytes, stored: bytes) -> str:
        async def listen(host: Host) -> None:
            await asyncio.get_running_loop().create_server(asyncio.Protocol, None, 1)
            await asyncio.sleep(10)

        async def speak(host: Host) -> None:
            await asyncio.sleep(1)
            host.disk.open("x", create=True).append([stored])
            _, writer = await asyncio.open_connection("b", 1)
            writer.write(message)
            await asyncio.sleep(1)
            writer.close()

        with World(1) as world:
            a, b = world.host("a"), world.host("b")
            b.start(listen)
            a.start(speak)
            world.run(3)
        return world.trace.digest()

    assert run(b"same", b"same") == run(b"same", b"same")
    assert run(b"this", b"same") != run(b"that", b"same")
    assert run(b"same", b"this") != run(b"same", b"that")
