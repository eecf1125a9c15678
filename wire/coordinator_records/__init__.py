"""Keys and values of the records that coordinators keep in `__consumer_offsets` and
`__transaction_state`, and the opaque bytes of classic consumer groups, one module per record type
(`offset_commit`: `OffsetCommitKey`, `OffsetCommitValue`).

A key is prefixed with its record type, a value with its version (`..versioned`).
"""
