"""API key 35: DescribeLogDirs."""

from __future__ import annotations

from ..schema import Message, Struct, array, boolean, int16, int32, int64, string


class DescribeLogDirsRequest(Message, versions="1-5", flexible="2+"):
    """What lies in a broker's data directories.

    v4 adds total and usable bytes.
    """

    class DescribableLogDirTopic(Struct):
        topic: str = string()
        partitions: list[int] = array(int32)

    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, nullable="0+")


class DescribeLogDirsResponse(Message, versions="1-5", flexible="2+"):
    """Each directory with its replicas and sizes."""

    throttle_time_ms: int = int32()
    error_code: int = int16(versions="3+", ignorable=True)

    class DescribeLogDirsResult(Struct):
        error_code: int = int16()
        log_dir: str = string()

        class DescribeLogDirsTopic(Struct):
            name: str = string()

            class DescribeLogDirsPartition(Struct):
                partition_index: int = int32()
                partition_size: int = int64()
                offset_lag: int = int64()
                is_future_key: bool = boolean()

            partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition)

        topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic)
        total_bytes: int = int64(default=-1, versions="4+", ignorable=True)
        usable_bytes: int = int64(default=-1, versions="4+", ignorable=True)
        is_cordoned: bool = boolean(versions="5+", ignorable=True)

    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult)

    DescribeLogDirsTopic = DescribeLogDirsResult.DescribeLogDirsTopic
    DescribeLogDirsPartition = DescribeLogDirsTopic.DescribeLogDirsPartition
