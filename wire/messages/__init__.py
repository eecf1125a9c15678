"""Requests and responses, one module per API (`produce`: `ProduceRequest`, `ProduceResponse`)."""
