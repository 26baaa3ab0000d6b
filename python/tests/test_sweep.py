"""Sweeps: threads, Ray and Dask write the same dataset, also if workers, nodes or the driver are killed."""

import json
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
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
from iosched.sweep import driver, engines

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
        offset = (line * 7919 + number * 104729) % 100000 * 4096
        text.append(f"{line * 900},{op},{offset},4096,{1 + line % 3}")
    return "\n".join(text) + "\n"


def fleet(directory, volumes, lines=60, **fields):
    for number in range(volumes):
        Path(directory, f"vol{number:04}.csv").write_text(trace(number, lines))
    return iosched.sweep.SweepPlan({**PLAN, **fields}, directory=directory)


def long_fleet(directory, volumes):
    """Returns a plan whose units take at least 0.1 s each."""
    return fleet(directory, volumes, lines=2000, runs=20)


def files(root):
    """Returns the files of a dataset, without the hidden files that killed processes leave."""
    root = Path(root)
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A plan, and the dataset that threads wrote for this plan."""
    directory = tmp_path_factory.mktemp("fleet")
    plan = fleet(directory, 6)
    outcome = sweep.run(plan, directory / "threads", jobs=2)
    assert (outcome.made, outcome.before, outcome.failed) == (12, 0, [])
    return plan, directory / "threads"


def test_command_writes_the_same_dataset(swept, command, tmp_path):
    plan, dataset = swept
    file = dataset.parent / "plan.toml"
    file.write_text(plan.text)
    done = subprocess.run([command, "sweep", str(file), "-o", str(tmp_path / "o")], capture_output=True, text=True)
    if "cannot sweep" in done.stderr:
        assert "CI" not in os.environ, done.stderr
        pytest.skip("the command is built without sweeps")
    assert done.returncode == 0, done.stderr
    assert files(tmp_path / "o") == files(dataset)


def test_ray_writes_the_same_dataset(swept, tmp_path):
    plan, dataset = swept
    outcome = sweep.run(plan, tmp_path / "o", engine="ray", jobs=2)
    assert outcome.made == 12
    assert files(tmp_path / "o") == files(dataset)
    assert not ray.is_initialized()


def test_dask_writes_the_same_dataset(swept, tmp_path):
    plan, dataset = swept
    seen = []
    outcome = sweep.run(plan, tmp_path / "o", engine="dask", jobs=2, progress=seen.append)
    assert outcome.made == 12
    assert files(tmp_path / "o") == files(dataset)
    assert [step.done for step in seen] == list(range(1, 13))
    assert {step.of for step in seen} == {12}


def test_dask_uses_the_given_client(swept, tmp_path):
    plan, dataset = swept
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        sweep.run(plan, tmp_path / "o", engine="dask", address=client)
    assert files(tmp_path / "o") == files(dataset)


def test_finished_units_do_not_run_again(swept, tmp_path):
    plan, dataset = swept
    again = sweep.run(plan, dataset)
    assert (again.made, again.before, again.others) == (0, 12, 0)
    fewer = iosched.sweep.SweepPlan({**PLAN, "devices": "sata-ssd"}, directory=dataset.parent)
    assert sweep.run(fewer, dataset).others == 6


def test_object_stores_can_hold_traces_and_datasets(swept, tmp_path):
    _, dataset = swept
    store = fsspec.filesystem("memory")
    for number in range(2):
        store.pipe_file(f"/traces/vol{number:04}.csv", trace(number).encode())
    at_urls = iosched.sweep.SweepPlan({**PLAN, "workloads": ["memory://traces/vol*.csv", "memory://traces/absent.csv"]})
    outcome = sweep.run(at_urls, "memory://results/one")
    assert outcome.made == 4
    assert [failed.workload for failed in outcome.failed] == ["memory://traces/absent.csv"]
    # The values equal those of the same traces in a directory.
    stored = values("memory://results/one", store)
    assert stored == {key: value for key, value in values(dataset).items() if key[0] in ("vol0000.csv", "vol0001.csv")}
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


def test_pyarrow_and_polars_read_the_dataset(swept):
    _, dataset = swept
    table = pyarrow.dataset.dataset(dataset / "runs", partitioning="hive").to_table().to_pandas()
    lazy = polars.scan_parquet(f"{dataset}/runs/**/*.parquet", hive_partitioning=True).collect()
    assert len(table) == len(lazy) > 0
    assert set(lazy["scheduler"]) == {"none", "mq-deadline", "bfq"}
    assert set(table["device"].astype(str)) == {"sata-7200", "sata-ssd"}
    compared = iosched.compare(
        dataset.parent / "vol0000.csv", "sata-ssd", PLAN["schedulers"], runs=3, baseline="mq-deadline"
    )
    expected = compared.metrics.to_polars().filter(polars.col("metric") == "sync_mean")["value"].sort().to_list()
    rows = lazy.filter(
        (polars.col("workload") == "vol0000.csv")
        & (polars.col("device") == "sata-ssd")
        & (polars.col("metric") == "sync_mean")
    )
    assert rows["value"].sort().to_list() == expected


def test_parquet_traces_are_read(tmp_path):
    table = polars.read_csv(trace(3).encode())
    table.write_parquet(tmp_path / "vol.parquet")
    plan = iosched.sweep.SweepPlan({**PLAN, "workloads": "vol.parquet"}, directory=tmp_path)
    outcome = sweep.run(plan, tmp_path / "o")
    assert (outcome.made, outcome.failed) == (2, [])


@pytest.mark.parametrize("engine", ["threads", "ray", "dask"])
def test_a_bad_trace_does_not_stop_a_sweep(engine, tmp_path):
    plan = fleet(tmp_path, 3)
    (tmp_path / "vol0001.csv").write_text("time_us,op,offset_bytes,length_bytes\n1,read,0,4096\n2,reed,0,4096\n")
    outcome = sweep.run(plan, tmp_path / "o", engine=engine, jobs=2)
    assert outcome.made == 4
    assert {(failed.workload, failed.device) for failed in outcome.failed} == {
        ("vol0001.csv", "sata-7200"),
        ("vol0001.csv", "sata-ssd"),
    }
    assert all("line 3" in failed.problem for failed in outcome.failed)
    listed = json.loads((tmp_path / "o" / "failed.json").read_text())
    assert [failed["workload"] for failed in listed] == ["vol0001.csv"] * 2


def killing(find, every_s, stop):
    """Kills one of the processes that `find` returns, again and again until `stop` is set."""
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


def test_dask_repeats_the_batches_of_killed_workers(tmp_path):
    plan = long_fleet(tmp_path, 40)
    sweep.run(plan, tmp_path / "whole")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):

        def started():
            # Dask does not restart a worker that is killed while it starts.
            nannies = list(cluster.workers.values())
            is_ready = all(nanny.status == distributed.Status.running for nanny in nannies)
            return [nanny.pid for nanny in nannies] if is_ready and len(cluster.scheduler.workers) == 2 else []

        stop = threading.Event()
        thread, killed = killing(started, 1.0, stop)
        outcome = sweep.run(plan, tmp_path / "o", engine="dask", address=client)
        stop.set()
        thread.join()
    assert killed
    assert outcome.failed == []
    assert files(tmp_path / "o") == files(tmp_path / "whole")


def test_dask_without_workers_warns_and_waits(swept, tmp_path, monkeypatch):
    plan, dataset = swept
    monkeypatch.setattr(engines, "WITHOUT_WORKERS_S", 0.1)
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
        ThreadPoolExecutor(1) as pool,
        warnings.catch_warnings(record=True) as warned,
    ):
        sweeping = pool.submit(sweep.run, plan, tmp_path / "o", engine="dask", address=client)
        while not any("Dask has no worker; start a worker" in str(one.message) for one in warned):
            time.sleep(0.1)
        assert not sweeping.done()
        cluster.scale(1)
        assert sweeping.result().made == 12
    assert files(tmp_path / "o") == files(dataset)


def test_ray_warns_if_no_node_has_enough_cpus(swept, tmp_path, monkeypatch):
    plan, dataset = swept
    monkeypatch.setattr(engines, "WITHOUT_WORKERS_S", 0.1)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        with (
            ThreadPoolExecutor(1) as pool,
            warnings.catch_warnings(record=True) as warned,
        ):
            sweeping = pool.submit(sweep.run, plan, tmp_path / "o", engine="ray", cpus=2)
            # The main thread adds the node, because Ray installs signal handlers when it adds a node.
            while not any("no node of the Ray cluster has 2 CPUs" in str(one.message) for one in warned):
                time.sleep(0.1)
            assert not sweeping.done()
            cluster.add_node(num_cpus=2)
            assert sweeping.result().made == 12
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert files(tmp_path / "o") == files(dataset)


def test_ray_repeats_the_batches_of_lost_nodes(tmp_path):
    plan = long_fleet(tmp_path, 40)
    sweep.run(plan, tmp_path / "whole")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        nodes = [cluster.add_node(num_cpus=1)]
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        removed = 0
        with ThreadPoolExecutor(1) as pool:
            sweeping = pool.submit(sweep.run, plan, tmp_path / "o", engine="ray")
            # The main thread adds nodes, because Ray installs signal handlers when it adds a node.
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


def test_a_killed_driver_continues_where_it_ended(tmp_path):
    plan = long_fleet(tmp_path, 20)
    (tmp_path / "plan.toml").write_text(plan.text)
    sweep.run(plan, tmp_path / "whole")
    words = [sys.executable, "-m", "iosched.sweep", "plan.toml", "-o", "o", "--jobs", "2"]

    def finished():
        return len(list((tmp_path / "o" / "runs").rglob("[!.]*.parquet")))

    for kill in (signal.SIGINT, signal.SIGKILL, signal.SIGINT, signal.SIGKILL):
        before = finished()
        process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while finished() < before + 3:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(kill)
        process.communicate()
    assert before > 0
    assert finished() < 40
    assert subprocess.run(words, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    assert files(tmp_path / "o") == files(tmp_path / "whole")


def test_estimate_and_units_describe_a_plan(swept):
    plan, _ = swept
    estimated = sweep.estimate(plan)
    assert (estimated["units"], estimated["runs"], estimated["unreadable"], estimated["refused"]) == (12, 12 * 9, 0, 0)
    assert estimated["core_s"] > 0
    found, refused = sweep.units(plan)
    assert refused == []
    assert pickle.loads(pickle.dumps(found[0])) == found[0]
    assert pickle.loads(pickle.dumps(plan)).text == plan.text


def test_summary_has_tables_an_answer_and_a_report(swept, tmp_path):
    _, dataset = swept
    found = sweep.summary(dataset, "sync_p99")
    assert len(found.volumes) == 12
    assert [row for row in found.gains.to_dict()["strategy"]] == ["common", "per_device", "per_volume"]
    assert sum(count for _, count in found.chosen) == 12
    found.report(tmp_path / "page.html")
    assert "Gain of the fleet" in (tmp_path / "page.html").read_text()
    assert found.answer in repr(found)
    assert "<iframe" in found._repr_html_()


@pytest.mark.parametrize(
    ("change", "options", "error", "text"),
    [
        ({"devices": "sata-720"}, {}, iosched.UsageError, "sata-7200"),
        ({"worklods": 1}, {}, iosched.UsageError, "did you mean workloads"),
        ({}, {"engine": "spark"}, iosched.UsageError, "must be threads, ray or dask"),
        ({}, {"jobs": 0}, iosched.UsageError, "1 or more"),
        ({}, {"address": "here"}, iosched.UsageError, "address"),
        ({}, {"engine": "ray", "jobs": 2, "cpus": 3}, iosched.UsageError, "cpus 3: must be at most 2"),
    ],
)
def test_sweeps_refuse_wrong_arguments(change, options, error, text, tmp_path):
    fleet(tmp_path, 1)
    with pytest.raises(error, match=text):
        sweep.run({**PLAN, **change, "workloads": str(tmp_path / "vol*.csv")}, tmp_path / "o", **options)


def test_command_line_estimates_runs_and_reports(swept, tmp_path):
    plan, dataset = swept
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


def test_summary_refuses_empty_and_damaged_datasets(tmp_path):
    with pytest.raises(iosched.UsageError, match="has no results"):
        sweep.summary(tmp_path)
    (tmp_path / "runs/device=x").mkdir(parents=True)
    (tmp_path / "runs/device=x/00.parquet").write_bytes(b"no")
    with pytest.raises(iosched.IoschedError, match=r"00.parquet: this is not a file of a sweep's dataset"):
        sweep.summary(tmp_path)


def test_ctrl_c_ends_a_sweep_and_keeps_finished_units(swept, tmp_path):
    plan = long_fleet(tmp_path, 60)
    threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        sweep.run(plan, tmp_path / "o", jobs=2)
    assert time.monotonic() - began < 20
    assert len(files(tmp_path / "o")) > 0


class Unit:
    """The attributes and methods of a unit that `batches` uses."""

    def __init__(self, number, place):
        self.id, self.place, self.workload = str(number), place, place

    def to_json(self):
        return self.id


@pytest.mark.parametrize(
    ("volumes", "units_per_volume", "sizes"),
    [(100, 1, {1}), (3, 20, {8, 4}), (4000, 1, {4}), (4000, 8, {32}), (200_000, 1, {64})],
)
def test_batches_are_larger_if_there_are_more_units(volumes, units_per_volume, sizes):
    units = [Unit(number, f"vol{number // units_per_volume}") for number in range(volumes * units_per_volume)]
    batches = list(driver.batches(units))
    assert [name for batch in batches for name in batch.ids] == [unit.id for unit in units]
    assert {len(batch.ids) for batch in batches} == sizes
    others = max(sizes) // units_per_volume - 1
    assert batches[0].workload == (f"vol0 and {others} more" if others > 0 else "vol0")
