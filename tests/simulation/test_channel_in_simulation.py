"""The channel between nodes over the simulated network: cuts, splits, losses, resets."""

from __future__ import annotations

import asyncio
import random
from uuid import UUID

import pytest

from logboat.jepsen_style.simulation import Host, World
from logboat.raftlog import Channel, ChannelClosed, Credential, accept_factory, dial

PORT = 9093
FRAMES = 1500


def credential(node_id: int, secret: bytes = b"secret" * 6) -> Credential:
    return Credential(secret, node_id, UUID(int=node_id), "simulated")


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


class Receiver:
    """Accepts channels and keeps what comes, each channel's frames in a list of its own."""

    def __init__(self) -> None:
        self.received: list[list[int]] = []
        self.channels: list[Channel] = []

    async def main(self, host: Host) -> None:
        loop = asyncio.get_running_loop()
        acceptor = accept_factory(credential(2), host.rng, self._on_channel)
        await loop.create_server(acceptor, None, PORT)
        await forever()

    def _on_channel(self, channel: Channel) -> None:
        frames: list[int] = []
        self.received.append(frames)
        self.channels.append(channel)
        channel.set_receiver(
            lambda payload: frames.append(int.from_bytes(payload[:4], "big")), lambda: None
        )


async def send_all(host: Host, dice: random.Random) -> list[int]:
    """Send numbered frames, dialling again from the next number whenever the channel ends."""
    loop = asyncio.get_running_loop()
    first_of_each = []
    number = 0
    while number < FRAMES:
        try:
            channel = await dial(
                "n2",
                PORT,
                credential=credential(1),
                service="raft",
                expected_node_id=2,
                rng=host.rng,
                deadline=loop.time() + 5,
            )
        except (OSError, TimeoutError):
            await asyncio.sleep(0.05)
            continue
        channel.set_receiver(lambda _: None, lambda: None)
        first_of_each.append(number)
        try:
            while number < FRAMES:
                size = dice.choice((0, 10, 1000, 70_000))
                channel.send([number.to_bytes(4, "big"), bytes(size)])
                number += 1
                await asyncio.sleep(dice.random() * 0.01)
                await channel.drained()
        except ChannelClosed:
            continue
        channel.close()
    await asyncio.sleep(5)
    return first_of_each


@pytest.mark.parametrize("seed", range(4))
def test_frames_come_in_order_and_once_per_channel_whatever_the_network_does(seed: int) -> None:
    dice = random.Random(seed)
    receiver = Receiver()
    with World(seed) as world:
        world.network.defaults.split = 0.3
        world.network.defaults.loss = 0.05
        one, two = world.host("n1"), world.host("n2")
        two.start(receiver.main)
        sender = one.start(lambda host: send_all(host, dice))
        for _ in range(6):
            world.run(dice.random() * 0.3)
            kind = dice.choice(("cut", "one-way", "reset", "pause", "kill"))
            if kind == "cut":
                world.network.partition([one], [two])
            elif kind == "one-way":
                world.network.block(two, one)
            elif kind == "reset":
                world.network.reset(one, two)
            elif kind == "pause":
                two.pause()
            else:
                two.kill()
                two.start(receiver.main)
            world.run(dice.random() * 0.5)
            world.network.heal()
            two.resume()
        world.run_until(lambda: not one.alive, within=120)
        begun = sender.result()
    assert max(frames[-1] for frames in receiver.received if frames) == FRAMES - 1
    for frames in receiver.received:
        # Each channel delivers a gapless run from its first frame.
        if frames:
            assert frames[0] in begun
            assert frames == list(range(frames[0], frames[-1] + 1))


def test_a_stranger_gets_no_channel() -> None:
    receiver = Receiver()

    async def intrude(host: Host) -> str:
        loop = asyncio.get_running_loop()
        try:
            await dial(
                "n2",
                PORT,
                credential=credential(1, b"guessed" * 5),
                service="raft",
                expected_node_id=2,
                rng=host.rng,
                deadline=loop.time() + 5,
            )
        except Exception as error:
            return type(error).__name__
        return "let in"

    with World(1) as world:
        world.host("n2").start(receiver.main)
        world.run(0.1)
        stranger = world.host("n1")
        done = stranger.start(intrude)
        world.run(10)
        assert done.result() == "HandshakeFailed"
        assert receiver.channels == []
