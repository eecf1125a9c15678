"""A running cluster for people's tests: a context manager, a pytest plugin, and the demo.

`LocalCluster` starts real node processes on free ports in a temporary folder, through the same
code as `logboat cluster up`. Nothing here is imported by the product below it.
"""
