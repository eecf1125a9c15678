"""Confluent's REST API, version 2: `/topics`, `/consumers`, `/brokers`, as small clients know it.

Where its implementations differ, Strimzi's bridge is followed: headers, timestamps, the text
format, 204 where there is nothing to say. Records are the same on all paths of a node.

A consumer instance lives in the memory of one node, as a member of its group; any node takes its
requests and passes them on to the one that has it.
"""
