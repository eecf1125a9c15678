"""TLS between nodes: who is let in, who is not, and what the log says about it."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from uuid import UUID

import pytest
import uvloop

from logboat.raftlog import (
    Channel,
    ChannelLimits,
    ChannelTls,
    Credential,
    HandshakeFailed,
    accept_factory,
    dial,
)
from logboat.seam import accept_no_more
from tests.raftlog.certificates import Authority
from tests.raftlog.quorum import SECRET, WITHIN_S, Quorum
from tests.waiting import until

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("stranger"))


@pytest.fixture(params=list(LOOPS))
def runner(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
        yield runner


def credential(node_id: int, tls: ChannelTls | None) -> Credential:
    return Credential(SECRET, node_id, UUID(int=node_id), "c", tls)


@asynccontextmanager
async def listening(
    tls: ChannelTls | None, limits: ChannelLimits | None = None
) -> AsyncIterator[tuple[int, asyncio.Queue[Channel]]]:
    """Node 2's port and what it accepts."""
    accepted: asyncio.Queue[Channel] = asyncio.Queue()
    channels: list[Channel] = []

    def on_channel(channel: Channel) -> None:
        channels.append(channel)
        accepted.put_nowait(channel)

    acceptor = accept_factory(credential(2, tls), Random(2), on_channel, limits)
    server = await asyncio.get_running_loop().create_server(acceptor, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], accepted
        # What happened to each dialer is in the log.
        await until(lambda: not acceptor._unauthenticated)
    finally:
        await accept_no_more(server)
        acceptor.close()
        for channel in channels:
            channel.close()
        await until(lambda: all(channel._lost for channel in channels))


async def dialed(port: int, tls: ChannelTls | None, *, node_id: int = 1) -> Channel:
    loop = asyncio.get_running_loop()
    return await dial(
        "127.0.0.1",
        port,
        credential=credential(node_id, tls),
        service="test",
        expected_node_id=2,
        rng=Random(1),
        deadline=loop.time() + WITHIN_S,
    )


def refusals(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the log says of connections, above the level of details."""
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


async def refusal_at_the_dialer(listener: ChannelTls | None, dialer: ChannelTls | None) -> str:
    """The reason given to node 1; the listener has logged its own by then."""
    async with listening(listener) as (port, accepted):
        with pytest.raises(HandshakeFailed) as refused:
            await dialed(port, dialer)
    assert accepted.empty()
    return str(refused.value)


def test_two_nodes_with_certificates_of_one_authority_meet(
    runner: asyncio.Runner, authority: Authority
) -> None:
    async def meet() -> None:
        async with listening(authority.tls("node-2")) as (port, accepted):
            ours = await dialed(port, authority.tls("node-1"))
            theirs = await asyncio.wait_for(accepted.get(), WITHIN_S)
            assert (ours.peer.node_id, theirs.peer.node_id) == (2, 1)
            heard: asyncio.Queue[bytes] = asyncio.Queue()
            theirs.set_receiver(lambda payload: heard.put_nowait(bytes(payload)), lambda: None)
            # The proof and these bytes may share a record: none is lost, none comes too early.
            for number in range(100):
                ours.send([bytes([number]) * 20_000])
            for number in range(100):
                assert await asyncio.wait_for(heard.get(), WITHIN_S) == bytes([number]) * 20_000
            version = theirs._transport.version  # type: ignore[attr-defined]
            assert version == "TLSv1.3"
            ours.close()

    runner.run(meet())


def test_a_record_that_was_altered_on_its_way_closes_the_channel(
    runner: asyncio.Runner, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    async def alter() -> None:
        async with listening(authority.tls("node-2")) as (port, accepted):
            ours = await dialed(port, authority.tls("node-1"))
            theirs = await asyncio.wait_for(accepted.get(), WITHIN_S)
            heard: list[memoryview] = []
            lost = asyncio.Event()
            theirs.set_receiver(heard.append, lost.set)
            below = ours._transport._transport  # type: ignore[attr-defined]
            below.write(b"\x17\x03\x03\x00\x20" + bytes(32))
            await asyncio.wait_for(lost.wait(), WITHIN_S)
            assert heard == []
            ours.close()

    runner.run(alter())
    (line,) = refusals(caplog)
    assert line.startswith("channel test to node 1 closed: TLS fails: ")


def test_what_is_sent_once_the_other_side_has_closed_is_dropped(
    runner: asyncio.Runner, authority: Authority
) -> None:
    async def send_too_late() -> None:
        async with listening(authority.tls("node-2")) as (port, accepted):
            ours = await dialed(port, authority.tls("node-1"))
            theirs = await asyncio.wait_for(accepted.get(), WITHIN_S)
            lost = asyncio.Event()
            ours.set_receiver(lambda payload: None, lost.set)
            theirs.close()
            # As when the other side's last word has been read in this turn of the loop.
            ours._transport.close()
            ours.send([bytes(1 << 20)])
            ours.close()
            await asyncio.wait_for(lost.wait(), WITHIN_S)

    runner.run(send_too_late())


def test_a_dialer_whose_authority_is_unknown_is_refused(
    runner: asyncio.Runner,
    authority: Authority,
    stranger: Authority,
    caplog: pytest.LogCaptureFixture,
) -> None:
    impostor = stranger.tls("node-1", believes=authority)
    reason = runner.run(refusal_at_the_dialer(authority.tls("node-2"), impostor))
    assert "does not know who signed this node's certificate" in reason
    (line,) = refusals(caplog)
    assert "refused: its certificate is refused: " in line


def test_a_listener_whose_authority_is_unknown_is_refused(
    runner: asyncio.Runner,
    authority: Authority,
    stranger: Authority,
    caplog: pytest.LogCaptureFixture,
) -> None:
    impostor = stranger.tls("node-2", believes=authority)
    reason = runner.run(refusal_at_the_dialer(impostor, authority.tls("node-1")))
    assert reason.startswith("its certificate is refused: ")
    (line,) = refusals(caplog)
    assert "it does not know who signed this node's certificate" in line


def test_a_dialer_that_claims_another_node_than_its_certificate_is_refused(
    runner: asyncio.Runner, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    runner.run(refusal_at_the_dialer(authority.tls("node-2"), authority.tls("node-3")))
    (line,) = refusals(caplog)
    assert line.endswith("refused: its certificate is for node-3, not for node-1")


def test_a_listener_with_the_certificate_of_another_node_is_refused(
    runner: asyncio.Runner, authority: Authority
) -> None:
    reason = runner.run(refusal_at_the_dialer(authority.tls("node-3"), authority.tls("node-1")))
    assert "not valid for 'node-2'" in reason


def test_a_certificate_may_name_several_nodes(runner: asyncio.Runner, authority: Authority) -> None:
    async def meet() -> None:
        both = authority.tls("node-1", "node-2")
        async with listening(both) as (port, accepted):
            (await dialed(port, both)).close()
            await asyncio.wait_for(accepted.get(), WITHIN_S)

    runner.run(meet())


def test_a_dialer_without_a_certificate_is_refused(
    runner: asyncio.Runner, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority.file)
    anonymous = ChannelTls(listening=context, dialing=context)
    reason = runner.run(refusal_at_the_dialer(authority.tls("node-2"), anonymous))
    assert "it wants a certificate" in reason
    (line,) = refusals(caplog)
    assert line.endswith("refused: it shows no certificate")


def test_a_plain_dialer_is_refused_by_a_listener_with_tls(
    runner: asyncio.Runner, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    reason = runner.run(refusal_at_the_dialer(authority.tls("node-2"), None))
    assert "TLS" in reason or "ended" in reason
    (line,) = refusals(caplog)
    assert line.endswith("refused: it does not speak TLS")


def test_a_dialer_with_tls_is_refused_by_a_plain_listener(
    runner: asyncio.Runner, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    async def dial_plain_listener() -> None:
        async with listening(None) as (port, accepted):
            with pytest.raises((HandshakeFailed, OSError)):
                await dialed(port, authority.tls("node-1"))
            assert accepted.empty()

    runner.run(dial_plain_listener())
    (line,) = refusals(caplog)
    assert line.endswith("refused: it speaks TLS, this node does not")


def test_a_certificate_without_the_secret_opens_nothing(
    runner: asyncio.Runner, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    async def dial_with_another_secret() -> None:
        async with listening(authority.tls("node-2")) as (port, accepted):
            thief = Credential(b"x" * 32, 1, UUID(int=1), "c", authority.tls("node-1"))
            with pytest.raises(HandshakeFailed, match="does not hold this cluster's secret"):
                await dial(
                    "127.0.0.1",
                    port,
                    credential=thief,
                    service="test",
                    expected_node_id=2,
                    rng=Random(1),
                    deadline=asyncio.get_running_loop().time() + WITHIN_S,
                )
            assert accepted.empty()

    runner.run(dial_with_another_secret())


def test_a_stranger_that_never_begins_tls_is_dropped_at_the_deadline(
    runner: asyncio.Runner, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    async def stay_silent() -> None:
        limits = ChannelLimits(handshake_s=0.05)
        async with listening(authority.tls("node-2"), limits) as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            async with asyncio.timeout(WITHIN_S):
                with suppress(ConnectionResetError):
                    assert await reader.read() == b""
            writer.transport.abort()

    runner.run(stay_silent())
    (line,) = refusals(caplog)
    assert line.endswith("refused: the handshake took too long")


def test_strangers_that_never_begin_tls_do_not_keep_a_peer_out(
    runner: asyncio.Runner, authority: Authority
) -> None:
    async def flood() -> None:
        limits = ChannelLimits(max_unauthenticated=4)
        async with listening(authority.tls("node-2"), limits) as (port, accepted):
            strangers = [socket.create_connection(("127.0.0.1", port)) for _ in range(12)]
            ours = await dialed(port, authority.tls("node-1"))
            await asyncio.wait_for(accepted.get(), WITHIN_S)
            ours.close()
            for stranger in strangers:
                stranger.close()

    runner.run(flood())


@pytest.mark.parametrize(
    "bytes_sent", [b"\x16\x03\x01\x00\x05hello", b"\x16\x03\x01", b"\x80" * 99]
)
def test_what_only_begins_like_tls_closes_the_connection(
    runner: asyncio.Runner,
    authority: Authority,
    caplog: pytest.LogCaptureFixture,
    bytes_sent: bytes,
) -> None:
    async def send_garbage() -> None:
        async with listening(authority.tls("node-2")) as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(bytes_sent)
            writer.write_eof()
            async with asyncio.timeout(WITHIN_S):
                with suppress(ConnectionResetError):
                    await reader.read()
            writer.transport.abort()

    runner.run(send_garbage())
    assert len(refusals(caplog)) == 1


def test_a_quorum_with_certificates_elects_and_commits(
    runner: asyncio.Runner, authority: Authority, tmp_path: Path
) -> None:
    async def elect_and_commit() -> None:
        async with Quorum(str(tmp_path), tls=lambda n: authority.tls(f"node-{n}")) as quorum:
            commands = [b"command %d" % number for number in range(50)]
            for command in commands:
                await quorum.propose(command)
            await quorum.all_applied(commands)

    runner.run(elect_and_commit())


def test_a_voter_that_comes_back_with_a_foreign_certificate_stays_outside(
    runner: asyncio.Runner, authority: Authority, stranger: Authority, tmp_path: Path
) -> None:
    async def come_back() -> None:
        async with Quorum(str(tmp_path), tls=lambda n: authority.tls(f"node-{n}")) as quorum:
            await quorum.propose(b"first")
            await quorum.all_applied([b"first"])
            leader = await quorum.leader()
            voter = next(v for v in quorum.voters.values() if v is not leader)
            await voter.stop()
            voter.tls = stranger.tls(f"node-{voter.node_id}", believes=authority)
            await voter.start()
            await quorum.propose(b"second")
            assert not leader.log.status().peers[voter.node_id].connected
            assert b"second" not in voter.machine.commands

            await voter.stop()
            voter.tls = authority.tls(f"node-{voter.node_id}")
            await voter.start()
            await quorum.all_applied([b"first", b"second"])

    runner.run(come_back())
