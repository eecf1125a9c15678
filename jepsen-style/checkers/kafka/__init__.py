"""The suite for partitioned logs: was a committed message ever lost, doubled, or put out of order?

Operations are lists of micro-operations, as Jepsen's Kafka tests write them:

| micro-operation | answered as |
| --- | --- |
| `["send", key, value]` | `["send", key, [offset, value]]` |
| `["poll"]` | `["poll", {key: [[offset, value], ...]}]` |
| `["latest", key]`, `["earliest", key]` | `["latest", key, offset]` |
| `["commit", group, key, offset]` | the same, or with the member's generation behind it |
| `["committed", group, key]` | `["committed", group, key, offset or null]` |
| `["create-topic", name, configuration]` | the same, or with `"exists"` behind it: refused |
| `["delete-topic", name]` | the same, or with `"absent"` behind it: refused |
| `["describe-topic", name]` | `["describe-topic", name, configuration or null]` |
| `["assignment", group]` | `["assignment", group, generation, member, [key, ...]]` |

and `assign` / `subscribe` whose value is a list of keys. A key is one partition. Values are unique
within a key. What observers saw of the cluster itself is described in `observations`.
"""

from .check import KafkaReport, check_kafka, report_on
from .ledger import Guarantee, Ledger
from .promises import Mode, Promise, Promises
from .settings import KafkaSettings

__all__ = [
    "Guarantee",
    "KafkaReport",
    "KafkaSettings",
    "Ledger",
    "Mode",
    "Promise",
    "Promises",
    "check_kafka",
    "report_on",
]
