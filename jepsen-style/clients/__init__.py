"""The clients whose histories are judged: asyncio only, and no line shared with `wire`.

Were the codec shared, a mistake in it would be made on both sides and never show. It speaks the
last versions before the flexible ones, which is little to write and what old clients speak, too;
only what the consumer protocol of groups needs is flexible.
`connection` frames requests, `requests` and `batches` know the bytes, `cluster` finds leaders and
tells *did not happen* from *may have happened*, `producer` and `consumer` do the work and write the
history, `pipelined_producer` does it with several batches in flight (`sequences`, `pipeline`);
`group_member` shares partitions with others by the classic protocol, `consumer_member` by the
consumer protocol, and `ownership` is what either does with its own; `churn` makes and deletes
topics, `trimmer` deletes records; `replica_reader` looks at what nobody else has read.
"""

from .churn import ChurnedTopic
from .cluster import ClusterClient
from .consumer import Consumer
from .consumer_member import ConsumerMember
from .coordinated import Coordinated, Group, Member
from .group_member import GroupMember
from .journal import NEMESIS, OBSERVER, Journal, Witness
from .pipelined_producer import PipelinedProducer
from .producer import Producer
from .replica_reader import read_replicas
from .requests import TopicPartition
from .sequences import Resend
from .trimmer import Trimmer

__all__ = [
    "NEMESIS",
    "OBSERVER",
    "ChurnedTopic",
    "ClusterClient",
    "Consumer",
    "ConsumerMember",
    "Coordinated",
    "Group",
    "GroupMember",
    "Journal",
    "Member",
    "PipelinedProducer",
    "Producer",
    "Resend",
    "TopicPartition",
    "Trimmer",
    "Witness",
    "read_replicas",
]
