"""Sweeps: the same dataset on threads, on Ray and on Dask, whatever was killed meanwhile."""

import json
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import distributed
import fsspec
import polars
import pyarrow.dataset
import pytest
import ray
from ray.cluster_utils import Cluster

import iosched
from iosched import sweep
from iosched.sweep import driver

PLAN = {
    "workloads": ["vol*.csv"],
    "devices": ["sata-7200", "sata-ssd"],
    "schedulers": ["none", "mq-deadline", "bfq"],
    "baseline": "mq-deadline",
    "runs": 3,
}


def trace(number, lines=60):
    text = ["time_us,op,offset_bytes,length_bytes,pid"]
    for line in range(lines):
        op = "write" if (line + number) % 3 == 0 else "read"
        place = (line * 7919 + number * 104729) % 100000 * 4096
        text.append(f"{line * 900},{op},{place},4096,{1 + line % 3}")
    return "\n".join(text) + "\n"


def fleet(place, volumes, lines=60, **other):
    for number in range(volumes):
        Path(place, f"vol{number:04}.csv").write_text(trace(number, lines))
    return iosched.sweep.SweepPlan({**PLAN, **other}, directory=place)


def long_fleet(place, volumes):
    """One whose units take a tenth of a second each, or more."""
    return fleet(place, volumes, lines=2000, runs=20)


def files(root):
    """Every file of a dataset, hidden leavings of what was killed left out."""
    root = Path(root)
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A plan, and its dataset as threads made it."""
    place = tmp_path_factory.mktemp("fleet")
    plan = fleet(place, 6)
    outcome = sweep.run(plan, place / "threads", jobs=2)
    assert (outcome.made, outcome.before, outcome.failed) == (12, 0, [])
    return plan, place / "threads"


def test_the_command_makes_the_same(made, command, tmp_path):
    plan, dataset = made
    file = dataset.parent / "plan.toml"
    file.write_text(plan.text)
    done = subprocess.run([command, "sweep", str(file), "-o", str(tmp_path / "o")], capture_output=True, text=True)
    if "cannot sweep" in done.stderr:
        assert "CI" not in os.environ, done.stderr
        pytest.skip("the command is built without sweeps")
    assert done.returncode == 0, done.stderr
    assert files(tmp_path / "o") == files(dataset)


def test_a_cluster_of_ray_makes_the_same(made, tmp_path):
    plan, dataset = made
    outcome = sweep.run(plan, tmp_path / "o", engine="ray", jobs=2)
    assert outcome.made == 12
    assert files(tmp_path / "o") == files(dataset)
    assert not ray.is_initialized()


def test_a_cluster_of_dask_makes_the_same(made, tmp_path):
    plan, dataset = made
    seen = []
    outcome = sweep.run(plan, tmp_path / "o", engine="dask", jobs=2, progress=seen.append)
    assert outcome.made == 12
    assert files(tmp_path / "o") == files(dataset)
    assert [one.done for one in seen] == list(range(1, 13))
    assert {one.of for one in seen} == {12}


def test_a_client_of_dask_is_used_as_it_is(made, tmp_path):
    plan, dataset = made
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        sweep.run(plan, tmp_path / "o", engine="dask", address=client)
    assert files(tmp_path / "o") == files(dataset)


def test_what_is_there_is_not_made_again(made, tmp_path):
    plan, dataset = made
    again = sweep.run(plan, dataset)
    assert (again.made, again.before, again.others) == (0, 12, 0)
    fewer = iosched.sweep.SweepPlan({**PLAN, "devices": "sata-ssd"}, directory=dataset.parent)
    assert sweep.run(fewer, dataset).others == 6


def test_an_object_store_and_traces_that_are_there(made, tmp_path):
    _, dataset = made
    store = fsspec.filesystem("memory")
    for number in range(2):
        store.pipe_file(f"/traces/vol{number:04}.csv", trace(number).encode())
    at_urls = iosched.sweep.SweepPlan({**PLAN, "workloads": ["memory://traces/vol*.csv", "memory://traces/absent.csv"]})
    outcome = sweep.run(at_urls, "memory://results/one")
    assert outcome.made == 4
    assert [one.workload for one in outcome.failed] == ["memory://traces/absent.csv"]
    # Values are those of the same files.
    there = values("memory://results/one", store)
    assert there == {key: value for key, value in values(dataset).items() if key[0] in ("vol0000.csv", "vol0001.csv")}
    assert sweep.run(at_urls, "memory://results/one").before == 4
    assert len(sweep.summary("memory://results/one").volumes) == 4


def values(root, store=None):
    if store is None:
        table = polars.read_parquet(f"{root}/runs/**/*.parquet", hive_partitioning=False)
    else:
        found = store.glob("/results/one/runs/*/*.parquet")
        table = polars.concat([polars.read_parquet(store.cat_file(path)) for path in found])
    keys = ["workload", "device", "scheduler", "metric", "run"]
    rows = table.select([*keys, "value"]).iter_rows()
    return {(row[0].rpartition("/")[2], *row[1:-1]): row[-1] for row in rows}


def test_others_read_the_dataset(made):
    _, dataset = made
    table = pyarrow.dataset.dataset(dataset / "runs", partitioning="hive").to_table().to_pandas()
    lazy = polars.scan_parquet(f"{dataset}/runs/**/*.parquet", hive_partitioning=True).collect()
    assert len(table) == len(lazy) > 0
    assert set(lazy["scheduler"]) == {"none", "mq-deadline", "bfq"}
    assert set(table["device"].astype(str)) == {"sata-7200", "sata-ssd"}
    compared = iosched.compare(
        dataset.parent / "vol0000.csv", "sata-ssd", PLAN["schedulers"], runs=3, baseline="mq-deadline"
    )
    mine = compared.metrics.to_polars().filter(polars.col("metric") == "sync_mean")["value"].sort().to_list()
    rows = lazy.filter(
        (polars.col("workload") == "vol0000.csv")
        & (polars.col("device") == "sata-ssd")
        & (polars.col("metric") == "sync_mean")
    )
    assert rows["value"].sort().to_list() == mine


def test_parquet_traces_are_read(tmp_path):
    table = polars.read_csv(trace(3).encode())
    table.write_parquet(tmp_path / "vol.parquet")
    plan = iosched.sweep.SweepPlan({**PLAN, "workloads": "vol.parquet"}, directory=tmp_path)
    outcome = sweep.run(plan, tmp_path / "o")
    assert (outcome.made, outcome.failed) == (2, [])


@pytest.mark.parametrize("engine", ["threads", "ray", "dask"])
def test_a_bad_trace_stops_nothing(engine, tmp_path):
    plan = fleet(tmp_path, 3)
    (tmp_path / "vol0001.csv").write_text("time_us,op,offset_bytes,length_bytes\n1,read,0,4096\n2,reed,0,4096\n")
    outcome = sweep.run(plan, tmp_path / "o", engine=engine, jobs=2)
    assert outcome.made == 4
    assert {(one.workload, one.device) for one in outcome.failed} == {
        ("vol0001.csv", "sata-7200"),
        ("vol0001.csv", "sata-ssd"),
    }
    assert all("line 3" in one.problem for one in outcome.failed)
    told = json.loads((tmp_path / "o" / "failed.json").read_text())
    assert [one["workload"] for one in told] == ["vol0001.csv"] * 2


def killing(find, every_s, stop):
    """Kills one of the processes that `find` gives, now and then."""
    killed = []

    def go():
        choose = random.Random(1)
        while not stop.wait(every_s):
            victims = find()
            if victims:
                victim = choose.choice(victims)
                try:
                    os.kill(victim, signal.SIGKILL)
                    killed.append(victim)
                except ProcessLookupError:
                    pass

    thread = threading.Thread(target=go, daemon=True)
    thread.start()
    return thread, killed


def test_dask_makes_again_what_its_workers_took_with_them(tmp_path):
    plan = long_fleet(tmp_path, 40)
    sweep.run(plan, tmp_path / "whole")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        stop = threading.Event()
        thread, killed = killing(lambda: [w.pid for w in cluster.workers.values() if w.pid], 1.0, stop)
        outcome = sweep.run(plan, tmp_path / "o", engine="dask", address=client)
        stop.set()
        thread.join()
    assert killed
    assert outcome.failed == []
    assert files(tmp_path / "o") == files(tmp_path / "whole")


def test_ray_makes_again_what_a_node_took_with_it(tmp_path):
    plan = long_fleet(tmp_path, 40)
    sweep.run(plan, tmp_path / "whole")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        nodes = [cluster.add_node(num_cpus=1)]
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        removed = 0
        with ThreadPoolExecutor(1) as elsewhere:
            sweeping = elsewhere.submit(sweep.run, plan, tmp_path / "o", engine="ray")
            # Nodes are added by this thread: Ray sets handlers of signals then.
            while not sweeping.done():
                time.sleep(2.0)
                cluster.remove_node(nodes.pop(), allow_graceful=False)
                nodes.append(cluster.add_node(num_cpus=1))
                removed += 1
            outcome = sweeping.result()
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert removed > 1
    assert outcome.failed == []
    assert files(tmp_path / "o") == files(tmp_path / "whole")


def test_a_driver_that_was_killed_goes_on_where_it_was(tmp_path):
    plan = long_fleet(tmp_path, 20)
    (tmp_path / "plan.toml").write_text(plan.text)
    sweep.run(plan, tmp_path / "whole")
    words = [sys.executable, "-m", "iosched.sweep", "plan.toml", "-o", "o", "--jobs", "2"]
    kills = 0
    while True:
        process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            process.communicate(timeout=1.5)
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL if kills % 2 else signal.SIGINT)
            process.communicate()
            kills += 1
    assert process.returncode == 0
    assert kills > 0
    assert files(tmp_path / "o") == files(tmp_path / "whole")


def test_what_a_sweep_takes_is_told(made):
    plan, _ = made
    told = sweep.estimate(plan)
    assert (told["units"], told["runs"], told["unreadable"], told["refused"]) == (12, 12 * 9, 0, 0)
    assert told["core_s"] > 0
    found, refused = sweep.units(plan)
    assert refused == []
    assert pickle.loads(pickle.dumps(found[0])) == found[0]
    assert pickle.loads(pickle.dumps(plan)).text == plan.text


def test_the_summary_is_told_in_every_way(made, tmp_path):
    _, dataset = made
    found = sweep.summary(dataset, "sync_p99")
    assert len(found.volumes) == 12
    assert [row for row in found.gains.to_dict()["strategy"]] == ["common", "per_device", "per_volume"]
    assert sum(count for _, count in found.chosen) == 12
    found.report(tmp_path / "page.html")
    assert "Gain of the fleet" in (tmp_path / "page.html").read_text()
    assert found.answer in repr(found)
    assert "<iframe" in found._repr_html_()


@pytest.mark.parametrize(
    ("change", "options", "error", "said"),
    [
        ({"devices": "sata-720"}, {}, iosched.UsageError, "sata-7200"),
        ({"worklods": 1}, {}, iosched.UsageError, "did you mean workloads"),
        ({}, {"engine": "spark"}, iosched.UsageError, "must be threads, ray or dask"),
        ({}, {"jobs": 0}, iosched.UsageError, "1 or more"),
        ({}, {"address": "here"}, iosched.UsageError, "address"),
    ],
)
def test_what_cannot_be_swept_is_told(change, options, error, said, tmp_path):
    fleet(tmp_path, 1)
    with pytest.raises(error, match=said):
        sweep.run({**PLAN, **change, "workloads": str(tmp_path / "vol*.csv")}, tmp_path / "o", **options)


def test_the_command_line(made, tmp_path):
    plan, dataset = made
    file = dataset.parent / "plan.toml"
    file.write_text(plan.text)

    def main(*words):
        return subprocess.run(
            [sys.executable, "-m", "iosched.sweep", *words], capture_output=True, text=True, cwd=tmp_path
        )

    done = main(str(file), "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")
    assert "comparisons   12\n" in done.stdout
    done = main(str(file), "-o", "o", "--report", "page.html", "--metric", "sync_p99")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("12 comparisons ran in ")
    assert files(tmp_path / "o") == files(dataset)
    assert (tmp_path / "page.html").exists()
    assert main(str(file)).returncode == 2
    assert main("absent.toml", "-o", "o").returncode == 2
    wrong = main(str(file), "-o", "o", "--metric", "sync_men")
    assert wrong.returncode == 2
    assert "available: " in wrong.stderr


def test_summaries_of_nothing_are_told(tmp_path):
    with pytest.raises(iosched.UsageError, match="has no results"):
        sweep.summary(tmp_path)
    (tmp_path / "runs/device=x").mkdir(parents=True)
    (tmp_path / "runs/device=x/00.parquet").write_bytes(b"no")
    with pytest.raises(iosched.IoschedError, match=r"00.parquet: this is not a file of a sweep's dataset"):
        sweep.summary(tmp_path)


def test_time_is_not_lost_waiting(made, tmp_path):
    """Ctrl-C in a sweep of this process is heard, and what is done is kept."""
    plan = long_fleet(tmp_path, 60)
    threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        sweep.run(plan, tmp_path / "o", jobs=2)
    assert time.monotonic() - began < 20
    assert len(files(tmp_path / "o")) > 0


class Unit:
    """As far as batches look at it."""

    def __init__(self, number, place):
        self.id, self.place, self.workload = str(number), place, place

    def to_json(self):
        return self.id


@pytest.mark.parametrize(
    ("volumes", "each", "sizes"),
    [(100, 1, {1}), (3, 20, {8, 4}), (4000, 1, {4}), (4000, 8, {32}), (200_000, 1, {64})],
)
def test_batches_are_large_where_there_are_many(volumes, each, sizes):
    wanted = [Unit(number, f"vol{number // each}") for number in range(volumes * each)]
    made = list(driver.batches(wanted))
    assert [one for batch in made for one in batch.ids] == [unit.id for unit in wanted]
    assert {len(batch.ids) for batch in made} == sizes
    others = max(sizes) // each - 1
    assert made[0].workload == (f"vol0 and {others} more" if others > 0 else "vol0")
