"""`make demo`: kill a leader under load, and count what was lost.

Real nodes, a real Kafka client, real text. Every record has a number as its key; every
acknowledgement is remembered with its offset; in the end everything is read back and compared, and
so are the files of all replicas. `SABOTAGE=1` removes acknowledged records from every replica
before that, to show that the comparison would notice.
"""
