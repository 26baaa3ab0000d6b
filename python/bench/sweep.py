"""What sweeps cost: `python bench/sweep.py scaling|killed|fleet`, from the folder python.

- `scaling`: units of 0.1 s on Ray and on Dask, by one worker and by two in turn; what an engine costs for each unit.
- `killed`: 10,000 units, while every 10 s a node (Ray) or a worker (Dask) is killed: is it the same dataset?
- `fleet`: 1,000 volumes, made from recordings, under 12 settings: requests a second, time, bytes.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import random
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl

import iosched
from iosched import sweep

SETTINGS = [
    "none",
    "none:nr_requests=32",
    "mq-deadline",
    "mq-deadline:fifo_batch=1",
    "mq-deadline:read_expire=100",
    "mq-deadline:writes_starved=4",
    "kyber",
    "kyber:read_lat_nsec=1000000",
    "bfq",
    "bfq:low_latency=0",
    "bfq:slice_idle=0",
    "bfq:strict_guarantees=1",
]
"""Of today's kernels, twelve that people try."""


def spread(values: list[float], digits: int = 2) -> str:
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def volumes(place: Path, count: int, ios: int) -> None:
    """Traces of reads and writes at random."""
    for number in range(count):
        choose = random.Random(number)
        lines = ["time_us,op,offset_bytes,length_bytes,pid"]
        now = 0.0
        for _ in range(ios):
            now += choose.expovariate(1 / 4000)
            op = "read" if choose.random() < 0.7 else "write"
            lines.append(f"{now:.1f},{op},{choose.randrange(1 << 22) * 4096},4096,{choose.randrange(1, 5)}")
        (place / f"vol{number:05}.csv").write_text("\n".join(lines) + "\n")


def plan(place: Path, **other: Any) -> sweep.SweepPlan:
    fields = {
        "workloads": "vol*.csv",
        "devices": "sata-7200",
        "schedulers": ["none", "mq-deadline", "bfq"],
        "replay": "open",
        "runs": 3,
    }
    return sweep.SweepPlan({**fields, **other}, directory=place)


def digest(root: Path) -> str:
    """Of all files of a dataset, in the order of their places."""
    whole = hashlib.sha256()
    for path in sorted(root.rglob("*.parquet")):
        if not path.name.startswith("."):
            whole.update(str(path.relative_to(root)).encode())
            whole.update(path.read_bytes())
    return whole.hexdigest()


@contextlib.contextmanager
def engine(name: str, workers: int) -> Iterator[dict[str, Any]]:
    """A cluster that is up, and what `run` is told of it."""
    if name == "ray":
        import ray

        ray.init(num_cpus=workers, log_to_driver=False, logging_level="error", include_dashboard=False)
        try:
            # Workers are there before the clock runs.
            ray.get([ray.remote(lambda: __import__("iosched").__version__).remote() for _ in range(workers)])
            yield {"engine": "ray"}
        finally:
            ray.shutdown()
    elif name == "dask":
        import distributed

        with (
            distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
            distributed.Client(cluster) as client,
        ):
            client.run(lambda: __import__("iosched").__version__)
            yield {"engine": "dask", "address": client}
    else:
        yield {"engine": "threads", "jobs": workers}


def timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def scaling(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        volumes(place, arguments.units, 1000)
        runs = 3
        # Runs of each setting until a unit takes 0.1 s.
        alone = []
        for _ in range(2):
            found, _ = sweep.units(plan(place, runs=runs))
            alone = [timed(found[number].make) for number in range(5)]
            runs = max(1, round(runs * 0.1 / statistics.median(alone)))
        of_plan = plan(place, runs=runs)
        found, _ = sweep.units(of_plan)
        alone = [timed(unit.make) for unit in found[:20]]
        print(f"{len(found)} units of {spread(alone, 3)} s, each of 3 settings x {runs} runs")
        for kind in ("threads", "ray", "dask"):
            took: dict[int, list[float]] = {1: [], 2: []}
            for number in range(arguments.rounds):
                for workers in (1, 2):
                    with engine(kind, workers) as options:
                        output = place / f"{kind}-{workers}-{number}"
                        took[workers].append(timed(lambda: sweep.run(of_plan, output, **options)))  # noqa: B023
            ratios = [one / two for one, two in zip(took[1], took[2], strict=True)]
            work = sum(alone) / len(alone) * len(found)
            costs = [(one / work - 1) * 100 for one in took[1]]
            print(f"{kind:8} 1 worker {spread(took[1])} s, 2 {spread(took[2])} s: {spread(ratios)} times; goal 1.9")
            print(f"         cost beside units made one by one without an engine: {spread(costs, 1)} %; goal below 5 %")


def killed(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        volumes(place, arguments.units // 2, arguments.ios)
        of_plan = plan(place, devices=["sata-7200", "sata-ssd"])
        took = timed(lambda: sweep.run(of_plan, place / "threads", jobs=2))
        expected = digest(place / "threads")
        print(f"{len(sweep.units(of_plan)[0])} units on threads, nobody killed: {took:.0f} s")
        for kind, under in (("dask", under_dask), ("ray", under_ray)):
            output = place / kind
            began = time.perf_counter()
            outcome, kills = under(of_plan, output, arguments.every)
            took = time.perf_counter() - began
            same = "the same dataset" if digest(output) == expected else "ANOTHER DATASET"
            print(f"on {kind}, {kills} killed: {took:.0f} s, {outcome.made} made, {len(outcome.failed)} failed: {same}")


def under_dask(of_plan: sweep.SweepPlan, output: Path, every_s: float) -> tuple[sweep.Outcome, int]:
    import distributed

    stop, kills, choose = threading.Event(), 0, random.Random(1)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
        ThreadPoolExecutor(1) as elsewhere,
    ):
        sweeping = elsewhere.submit(sweep.run, of_plan, output, engine="dask", address=client)
        while not sweeping.done():
            stop.wait(every_s)
            pids = [worker.pid for worker in cluster.workers.values() if worker.pid]
            if pids and not sweeping.done():
                os.kill(choose.choice(pids), signal.SIGKILL)
                kills += 1
        return sweeping.result(), kills


def under_ray(of_plan: sweep.SweepPlan, output: Path, every_s: float) -> tuple[sweep.Outcome, int]:
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    kills = 0
    try:
        nodes = [cluster.add_node(num_cpus=1)]
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        with ThreadPoolExecutor(1) as elsewhere:
            sweeping = elsewhere.submit(sweep.run, of_plan, output, engine="ray")
            while not sweeping.done():
                time.sleep(every_s)
                if not sweeping.done():
                    cluster.remove_node(nodes.pop(), allow_graceful=False)
                    kills += 1
                    nodes.append(cluster.add_node(num_cpus=1))
            return sweeping.result(), kills
    finally:
        ray.shutdown()
        cluster.shutdown()


def fleet_of(recordings: list[str], place: Path, count: int, ios: int) -> int:
    """Volumes of parts of recordings, at other rates and places; how many requests they have in all."""
    parts = []
    for recording in recordings:
        table = iosched.read_trace(recording).to_arrow().to_polars()
        for first in range(0, max(1, len(table) - ios // 2), ios // 2):
            parts.append(table.slice(first, ios))
    total = 0
    for number in range(count):
        choose = random.Random(number)
        part = parts[number % len(parts)]
        rate, shift = choose.uniform(0.5, 2.0), choose.randrange(1 << 24) * 8
        times = ((pl.col("arrival_ns") - pl.col("arrival_ns").min()) / rate).cast(pl.UInt64)
        part = part.with_columns(times.alias("arrival_ns"), (pl.col("sector") % (1 << 30) + shift).alias("sector"))
        iosched.Trace.from_arrow(part, f"vol{number}").write(place / f"vol{number:05}.csv")
        total += len(part)
    return total


def fleet(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        requests = fleet_of(arguments.recordings, place, arguments.units, arguments.ios)
        half = arguments.units // 2
        fields = {"schedulers": SETTINGS, "baseline": "mq-deadline", "runs": arguments.runs, "replay": "open"}
        crosses = [
            {"devices": "sata-7200", "workloads": [f"vol{number:05}.csv" for number in range(half)]},
            {"devices": "nvme", "workloads": [f"vol{number:05}.csv" for number in range(half, arguments.units)]},
        ]
        of_plan = sweep.SweepPlan({**fields, "cross": crosses}, directory=place)
        told = sweep.estimate(of_plan)
        for kind in arguments.engines:
            output = place / kind
            with engine(kind, 2) as options:
                took = timed(lambda: sweep.run(of_plan, output, **options))  # noqa: B023
            simulated = requests * len(SETTINGS) * arguments.runs
            read = sum(path.stat().st_size for path in place.glob("vol*.csv"))
            written = sum(path.stat().st_size for path in output.rglob("*.parquet"))
            print(
                f"{kind}: {arguments.units} volumes x {len(SETTINGS)} settings x {arguments.runs} runs, "
                f"{requests:,} requests: "
                f"{took:.0f} s on 2 cores (told before: {told['core_s'] / 2:.0f} s)"
            )
            print(f"  {simulated / took / 1e6:.2f} M requests/s, {simulated / took / 2e6:.2f} M/s a core")
            print(
                f"  {read / 1e6:.1f} MB read, {written / 1e6:.1f} MB written, "
                f"{written / arguments.units / 1e3:.1f} kB a volume"
            )
        began = time.perf_counter()
        found = sweep.summary(output, "sync_mean")
        print(f"summary in {time.perf_counter() - began:.1f} s: {found.answer}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_subparsers(required=True)
    one = which.add_parser("scaling")
    one.add_argument("--units", type=int, default=100)
    one.add_argument("--rounds", type=int, default=3)
    one.set_defaults(go=scaling)
    one = which.add_parser("killed")
    one.add_argument("--units", type=int, default=10_000)
    one.add_argument("--ios", type=int, default=200)
    one.add_argument("--every", type=float, default=10.0)
    one.set_defaults(go=killed)
    one = which.add_parser("fleet")
    one.add_argument("recordings", nargs="+", help="traces to make volumes of")
    one.add_argument("--units", type=int, default=1000)
    one.add_argument("--ios", type=int, default=2000)
    one.add_argument("--runs", type=int, default=4)
    one.add_argument("--engines", nargs="+", default=["threads"])
    one.set_defaults(go=fleet)
    arguments = parser.parse_args()
    arguments.go(arguments)


if __name__ == "__main__":
    main()
