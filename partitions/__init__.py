"""A broker's partitions: their logs on disk, who leads them, who is in sync, what is committed.

Promises: an acknowledged `acks=all` record stays readable at its offset while one in-sync replica
lives (RULES C, D); nobody but a replica sees what is not committed. Leaves to others: who leads and
where replicas lie (`metadata`), sockets and channels (`node`), what records mean (`groups`).

`Replicas` is the door. Behind it, from the rules to the shell: `leader.py` and `follower.py`
decide, `partition.py` carries out, `waiting_room.py` holds who must wait, `fetcher.py` copies from
leaders, `isr_sender.py` talks to the controller, and one file per Kafka API does the requests.
"""

from .peer import ControllerLink, Peer, PeerConnector, PeerLost
from .replicas import AppendOutcome, Replicas
from .replication_config import ReplicationConfig
from .roles import OnLeadership, PartitionState, Refused, ReplicationCounters, Role
from .storage import RecordsDamaged
from .traffic import TopicTraffic

__all__ = [
    "AppendOutcome",
    "ControllerLink",
    "OnLeadership",
    "PartitionState",
    "Peer",
    "PeerConnector",
    "PeerLost",
    "RecordsDamaged",
    "Refused",
    "Replicas",
    "ReplicationConfig",
    "ReplicationCounters",
    "Role",
    "TopicTraffic",
]
