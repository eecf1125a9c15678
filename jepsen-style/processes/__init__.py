"""The executor on real processes: the same schedules, carried out on a `LocalCluster`.

`run` carries a schedule out and judges it. Every connection, of clients to nodes and of nodes to
each other, goes through a `proxy` whose `links` can be cut, slowed and made to lose frames;
`process_faults` sends signals, `network_faults` turns links, `strikes` says when. `view` asks the
nodes who plays which role, `draw` makes a schedule from a seed, `outcome` weighs what came out.
Nothing here needs privileges; disks and clocks are not hurt.
"""
