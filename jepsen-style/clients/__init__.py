"""The clients whose histories are judged: asyncio only, and no line shared with `wire`.

Were the codec shared, a mistake in it would be made on both sides and never show. It speaks the
last versions before the flexible ones, which is little to write and what old clients speak, too.
`connection` frames requests, `requests` and `batches` know the bytes, `cluster` finds leaders and
tells *did not happen* from *may have happened*, `producer` and `consumer` do the work and write the
history; `group_member` shares partitions with others; `churn` makes and deletes topics;
`replica_reader` looks at what nobody else has read.
"""

from .churn import ChurnedTopic
from .cluster import ClusterClient
from .consumer import Consumer
from .group_member import Group, GroupMember
from .journal import Journal, Witness
from .producer import Producer
from .replica_reader import read_replicas
from .requests import TopicPartition

__all__ = [
    "ChurnedTopic",
    "ClusterClient",
    "Consumer",
    "Group",
    "GroupMember",
    "Journal",
    "Producer",
    "TopicPartition",
    "Witness",
    "read_replicas",
]
