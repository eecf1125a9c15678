"""`node.toml` and the settings: Kafka's names, flat or nested, and nothing else."""

from __future__ import annotations

import tomllib

import pytest

from logboat.node.addresses import Address, parse_listeners, parse_voters
from logboat.node.config import ConfigRefused, NodeConfig
from logboat.node.config_file import read_settings, render_defaults
from logboat.node.inert_settings import INERT_SETTINGS
from logboat.node.run import raft_settings
from logboat.node.settings import REQUIRED, SETTINGS

LEAST = {"node.id": "1", "cluster.id": "c", "log.dirs": "/data"}


def test_keys_may_be_flat_quoted_or_nested() -> None:
    flat = read_settings('"node.id" = 1\nlog.retention.ms = 5\nauto.create.topics.enable = false\n')
    nested = read_settings(
        "[node]\nid = 1\n[log.retention]\nms = 5\n[auto.create.topics]\nenable = false\n"
    )
    expected = {"node.id": "1", "log.retention.ms": "5", "auto.create.topics.enable": "false"}
    assert flat == nested == expected


def test_a_list_is_text_with_commas() -> None:
    read = read_settings('listeners = ["PLAINTEXT://a:1", "INTERNODE://a:2"]')
    assert read["listeners"] == "PLAINTEXT://a:1,INTERNODE://a:2"


@pytest.mark.parametrize("text", ["node.id = ", '"a.b" = 1\na.b = 2', "log.dirs = 2026-01-01"])
def test_a_file_that_says_nothing_clear_is_refused(text: str) -> None:
    with pytest.raises(ConfigRefused):
        read_settings(text)


@pytest.mark.parametrize("missing", REQUIRED)
def test_what_is_required_must_be_there(missing: str) -> None:
    given = {name: value for name, value in LEAST.items() if name != missing}
    with pytest.raises(ConfigRefused, match=f"{missing} is required"):
        NodeConfig.of(given)


def test_a_name_of_kafka_without_effect_is_taken_and_told() -> None:
    config = NodeConfig.of({**LEAST, "num.io.threads": "8"})
    assert config.without_effect == ["num.io.threads"]
    assert not INERT_SETTINGS & SETTINGS.keys()


def test_defaults_are_legal_and_printed_as_a_file_that_can_be_read_back() -> None:
    printed = render_defaults()
    settings = read_settings(printed)
    assert settings.keys() == {n for n, d in SETTINGS.items() if d.default is not None}
    for name, value in settings.items():
        assert value == SETTINGS[name].default
        if value:
            SETTINGS[name].validate(value)
    assert tomllib.loads(printed)


def test_a_node_alone_is_its_own_quorum() -> None:
    config = NodeConfig.of(LEAST)
    assert list(config.voters) == [1]
    assert str(config.kafka) == "127.0.0.1:9092"
    assert config.advertised_kafka == config.kafka
    assert raft_settings(config).election_max_s <= 0.1


def test_three_voters_and_their_times() -> None:
    config = NodeConfig.of(
        {
            **LEAST,
            "controller.quorum.voters": "3@h3:9093, 1@h1:9093,2@h2:9093",
            "controller.quorum.election.timeout.ms": "300",
            "cluster.secret.file": "secret",
        }
    )
    assert config.voters == {1: Address("h1", 9093), 2: Address("h2", 9093), 3: Address("h3", 9093)}
    assert list(config.voters) == [1, 2, 3]
    raft = raft_settings(config)
    times = (raft.election_min_s, raft.election_max_s, raft.fallback_s)
    assert times == pytest.approx((0.3, 0.6, 0.45))


def test_a_node_that_is_no_voter_is_a_broker_that_observes_the_quorum() -> None:
    given = {
        **LEAST,
        "node.id": "4",
        "controller.quorum.voters": "1@h1:9093",
        "cluster.secret.file": "secret",
    }
    config = NodeConfig.of(given)
    assert not config.votes
    # The times of a lone voter are its own.
    assert raft_settings(config).election_min_s == 0.6
    assert not NodeConfig.of({**given, "process.roles": "broker"}).votes
    del given["cluster.secret.file"]
    with pytest.raises(ConfigRefused, match=r"cluster\.secret\.file is required"):
        NodeConfig.of(given)


@pytest.mark.parametrize(
    ("node_id", "roles", "sentence"),
    [
        ("1", "broker", "must be 'broker,controller'"),
        ("4", "broker,controller", "must be 'broker'"),
        ("1", "controller", "is not built"),
    ],
)
def test_the_roles_say_the_same_as_the_voters(node_id: str, roles: str, sentence: str) -> None:
    given = {
        **LEAST,
        "node.id": node_id,
        "controller.quorum.voters": "1@h1:9093",
        "cluster.secret.file": "secret",
    }
    with pytest.raises(ConfigRefused, match=sentence):
        NodeConfig.of({**given, "process.roles": roles})


def test_all_interfaces_need_a_name_to_be_reached_by() -> None:
    listeners = {"listeners": "PLAINTEXT://0.0.0.0:9092,INTERNODE://0.0.0.0:9093"}
    with pytest.raises(ConfigRefused, match=r"advertised\.listeners"):
        NodeConfig.of({**LEAST, **listeners})
    advertised = {"advertised.listeners": "PLAINTEXT://me:9092,INTERNODE://me:9093"}
    config = NodeConfig.of({**LEAST, **listeners, **advertised})
    assert config.advertised_kafka == Address("me", 9092)


def test_the_secret_is_not_shown() -> None:
    assert "hidden-word" not in repr(NodeConfig.of(LEAST, secret=b"hidden-word"))


def test_addresses_are_read_as_they_are_written() -> None:
    for text in ("h:1", "[::1]:9092", "127.0.0.1:0"):
        assert str(Address.parse(text)) == text
    assert parse_listeners("plaintext://[::1]:1") == {"PLAINTEXT": Address("::1", 1)}
    assert parse_voters("") == {}


@pytest.mark.parametrize("text", ["h", "h:", "h:x", "h:70000", ":-1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not host:port"):
        Address.parse(text)
