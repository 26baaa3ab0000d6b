"""What crossing the border costs: `python bench/bench.py --command ../target/release/iosched`.

Each line is our figure, the goal, and what it is beside something measured in the same run.
"""

from __future__ import annotations

import argparse
import collections
import statistics
import subprocess
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import iosched


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def spread(values: list[float], factor: float, unit: str) -> str:
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle * factor:9.2f} {unit} ({low * factor:.2f} to {high * factor:.2f})"


def beside_the_command(command: str, rounds: int, runs: int) -> None:
    """The same comparison and its verdicts by both, in turn; the command also starts and prints."""
    ours, theirs = [], []
    arguments = [command, "compare", "-n", str(runs), "--records", "/dev/null", "--json"]
    for _ in range(rounds):
        ours.append(seconds(lambda: iosched.compare(runs=runs).verdicts))
        theirs.append(seconds(lambda: subprocess.run(arguments, check=True, capture_output=True)))
    ratio = statistics.median(ours) / statistics.median(theirs)
    print(f"compare, {runs} runs each     {spread(ours, 1000, 'ms')}")
    print(f"  the command            {spread(theirs, 1000, 'ms')}")
    print(f"  ratio {ratio:.3f}; goal: at most 1.03")


def overhead(rounds: int) -> None:
    """A run of one I/O: all of it is the call."""
    task = {"pid": 1, "name": "one", "pattern": "random", "total": 1}
    one = iosched.Workload.from_dict({"name": "one", "tasks": [task]})
    more = iosched.Workload.from_dict({"name": "more", "tasks": [{**task, "total": 1001}]})
    device = iosched.Device.from_dict(
        {
            "kind": "fixed",
            "fixed": {"depth": 4, "parallel": 1, "lat_ns": 100_000, "ns_per_sector": 0, "capacity_sectors": 1 << 21},
        }
    )
    none = iosched.Setting("none")
    each = 2000

    def call(workload: iosched.Workload) -> None:
        for _ in range(each):
            iosched.simulate(workload, device, none, requests=False)

    ones = [seconds(lambda: call(one)) / each for _ in range(rounds)]
    mores = [seconds(lambda: call(more)) / each for _ in range(rounds)]
    ios = (statistics.median(mores) - statistics.median(ones)) / 1000
    print(f"simulate, one I/O        {spread(ones, 1e6, 'us')}; goal: below 50 us")
    print(f"  an I/O more            {ios * 1e6:9.2f} us")


def tables(rounds: int) -> None:
    """A million rows into other libraries."""
    count = 1_000_000
    numbers = np.arange(count)
    sectors = numbers * 7919 % 10**8
    frame = pd.DataFrame({"arrival_ns": numbers * 10_000, "op": "read", "sector": sectors, "nr_sectors": 8})
    trace = iosched.Trace.from_arrow(pa.Table.from_pandas(frame, preserve_index=False))
    run = iosched.simulate(trace, "nvme", "none", replay="open")
    made = [seconds(lambda: run.requests) for _ in range(rounds)]
    table = run.requests
    ways: list[tuple[str, Callable[[], object]]] = [
        ("pyarrow", lambda: pa.table(table)),
        ("polars", lambda: pl.DataFrame(table)),
        ("pandas", lambda: table.to_pandas()),
    ]
    copied = [seconds(lambda: pa.table(frame["sector"].to_frame())) for _ in range(rounds)]
    print(f"10^6 rows, made          {spread(made, 1000, 'ms')}")
    for name, way in ways:
        print(f"  into {name:17} {spread([seconds(way) for _ in range(rounds)], 1000, 'ms')}; goal: below 50 ms")
    print(f"  a column by numpy      {spread(copied, 1000, 'ms')}")


class Fifo(iosched.Elevator):
    def __init__(self) -> None:
        self.queue: collections.deque[iosched.Request] = collections.deque()

    def insert(self, now_ns: int, request: iosched.Request) -> None:
        self.queue.append(request)

    def dispatch(self, now_ns: int) -> iosched.Request | None:
        return self.queue.popleft() if self.queue else None


class Batches(iosched.Elevator):
    def batch(self, now_ns: int, arrived: list[iosched.Request]) -> list[iosched.Request]:
        return arrived


def policies(rounds: int) -> None:
    """First come, first served, by Python, by Python in batches, and by Rust; 16 processes with 32 reads each."""
    each = {"name": "reader", "pattern": "random", "range": [0, 1 << 30], "iodepth": 32, "total": 20_000}
    work = iosched.Workload.from_dict({"name": "readers", "tasks": [{**each, "pid": pid} for pid in range(1, 17)]})
    ios = 16 * 20_000
    for name, policy, goal in [("FIFO", Fifo, 0.3), ("in batches", Batches, 1.0), ("noop, Rust", "noop", None)]:
        took = [seconds(lambda: iosched.simulate(work, "sata-7200", policy, requests=False)) for _ in range(rounds)]  # noqa: B023
        rates = [ios / one for one in took]
        told = f"; goal: above {goal} M/s" if goal else ""
        print(f"policy, {name:16} {spread(rates, 1e-6, 'M requests/s')}{told}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--command", required=True, help="the command iosched, built as the package was")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--runs", type=int, default=60)
    arguments = parser.parse_args()
    beside_the_command(arguments.command, arguments.rounds, arguments.runs)
    overhead(arguments.rounds)
    tables(arguments.rounds)
    policies(arguments.rounds)


if __name__ == "__main__":
    main()
