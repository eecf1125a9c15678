"""The executor on real processes: the same schedules, carried out on a `LocalCluster`.

`run` carries a schedule out and judges it. Every connection, of clients to nodes and of nodes to
each other, goes through a `proxy` whose `links` can be cut, slowed and made to lose frames;
`process_faults` sends signals, `network_faults` turns links, `disk_faults` and `clocks` hurt those,
`strikes` says when; a `caretaker` looks after nodes whose disks were damaged. `view` asks the nodes
who plays which role, `draw` makes a schedule from a seed, `outcome` weighs what came out. Whatever
needs root, or a tool that is not there, is skipped by name (`means`).
"""
