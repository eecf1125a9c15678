"""Confluent's REST API, version 3: `/v3/clusters/...`, as Terraform and Confluent's command line
know it: topics, settings, groups and their lag, records as a stream. It has no way to read records.

Every object says what it is, where it is and what belongs to it (`resources.py`). What is not built
is answered plainly (`refused.py`); `docs/http.md` lists both.
"""
