"""What the cluster agrees on.

* `image.py`: the state, immutable to its readers, and the change from one to the next; the only
  file that `partitions` and `groups` may import.
* `commands.py`, `codec.py`, `packing.py`: what the quorum's log holds, and its bytes.
* `apply/`: the one place where the image changes; `elections.py` says who leads.
* `machine.py`, `snapshot.py`: the state machine under the quorum's log.
* `controller/`: the APIs of the active controller; `sessions.py`, `broker_life.py`: who lives.
* `placement.py`, `topic_configs.py`, `broker_configs.py`: what is computed beforehand.

How bytes are agreed on is `raftlog`'s business; what a partition does with its state is
`partitions`'.
"""
