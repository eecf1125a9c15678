"""The operations that a client may perform: all of them, as long as there are no ACLs.

Bits are numbered as Kafka's AclOperation: 3 READ, 4 WRITE, 5 CREATE, 6 DELETE, 7 ALTER, 8 DESCRIBE,
9 CLUSTER_ACTION, 10 DESCRIBE_CONFIGS, 11 ALTER_CONFIGS, 12 IDEMPOTENT_WRITE.
"""

from __future__ import annotations


def _bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


NOT_ASKED = -(2**31)
TOPIC = _bits(3, 4, 5, 6, 7, 8, 10, 11)
CLUSTER = _bits(5, 7, 8, 9, 10, 11, 12)
GROUP = _bits(3, 6, 8, 10, 11)
