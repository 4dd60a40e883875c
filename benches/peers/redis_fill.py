"""Fills a Redis cluster with the lines of a file, as fast as Python's client can, and prints how fast.

    redis-server --port 7101 --cluster-enabled yes --save "" ... (three of them)
    redis-cli --cluster create 127.0.0.1:7101 127.0.0.1:7102 127.0.0.1:7103 --cluster-yes
    python3 -m venv redis && redis/bin/pip install 'redis[hiredis]==8.1.0'
    redis/bin/python benches/peers/redis_fill.py dna.txt 127.0.0.1:7101

Two ways, each with pipelines of 1,000 commands: the pipeline of `RedisCluster`, which deals commands to
nodes itself, and a thread with a pipeline for each node. The last line of output is JSON: for each way
the keys, the bytes of the values and the seconds from the first put to the last answer.
"""

import json
import sys
import threading
import time
from collections import defaultdict

from redis import Redis
from redis.cluster import RedisCluster
from redis.crc import key_slot

IN_PIPELINE = 1000


def by_cluster(cluster: RedisCluster, values: list[tuple[bytes, bytes]]) -> None:
    """Fills through the cluster's own pipeline."""
    for begin in range(0, len(values), IN_PIPELINE):
        with cluster.pipeline() as pipeline:
            for key, value in values[begin : begin + IN_PIPELINE]:
                pipeline.set(key, value)
            pipeline.execute()


def by_node(cluster: RedisCluster, values: list[tuple[bytes, bytes]]) -> None:
    """Fills through a thread and a connection for each node."""
    of_node = defaultdict(list)
    for key, value in values:
        node = cluster.nodes_manager.get_node_from_slot(key_slot(key))
        of_node[(node.host, node.port)].append((key, value))

    def fill(place: tuple[str, int], values: list[tuple[bytes, bytes]]) -> None:
        connection = Redis(host=place[0], port=place[1])
        for begin in range(0, len(values), IN_PIPELINE):
            pipeline = connection.pipeline(transaction=False)
            for key, value in values[begin : begin + IN_PIPELINE]:
                pipeline.set(key, value)
            pipeline.execute()

    threads = [threading.Thread(target=fill, args=item) for item in of_node.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    path, place = sys.argv[1], sys.argv[2]
    host, port = place.rsplit(":", 1)
    with open(path, "rb") as file:
        values = [(b"py:%d" % number, line.strip()) for number, line in enumerate(file)]
    n_bytes = sum(len(value) for _, value in values)
    cluster = RedisCluster(host=host, port=int(port))
    answer = {}
    for name, fill in (("by_cluster", by_cluster), ("by_node", by_node)):
        cluster.flushall(target_nodes=RedisCluster.PRIMARIES)
        started = time.perf_counter()
        fill(cluster, values)
        seconds = time.perf_counter() - started
        answer[name] = {"keys": len(values), "bytes": n_bytes, "seconds": seconds}
        print(f"{name}: {n_bytes / 1e6 / seconds:.1f} MB/s", flush=True)
        number = len(values) // 2
        if cluster.get(values[number][0]) != values[number][1]:
            raise SystemExit(f"value {number} is not what was put")
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
