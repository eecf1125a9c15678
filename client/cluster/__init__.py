"""A cluster of node processes on this machine: `logboat cluster up`, `status`, `down`, `purge`.

One folder holds everything: `cluster.json` (which nodes, where they listen, their last pids),
`secret`, and per node `node-N/node.toml`, `node-N/node.log` and `node-N/data`. The commands are
plain functions over that folder; `testing.LocalCluster` calls the same ones.
"""
