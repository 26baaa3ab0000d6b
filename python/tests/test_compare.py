"""Comparisons: the same records as the command, tables for other libraries, reports and files."""

import pickle
import shlex
import signal
import subprocess
import threading
import time

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import iosched

TASKS = {
    "name": "two",
    "tasks": [
        {"pid": 1, "name": "reader", "pattern": "random", "total": 200},
        {"pid": 2, "name": "writer", "op": "write", "pattern": "random", "total": 200},
    ],
}


@pytest.fixture(scope="module")
def sample():
    return iosched.compare(scheduler=["mq-deadline", "bfq"], runs=3)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ({}, ""),
        ({"scheduler": "cfq:slice_idle=0..8/4", "runs": 2, "seed": 7}, "-s cfq:slice_idle=0..8/4 -n 2 --seed 7"),
        (
            {
                "device": ["sata-ssd", "nvme"],
                "scheduler": ["none", "bfq"],
                "baseline": "bfq",
                "runs": 2,
                "replay": "open",
                "speed": 2.0,
            },
            "-d sata-ssd -d nvme -s none -s bfq -b bfq -n 2 --replay open --speed 2",
        ),
        (
            {"scheduler": ["noop", "cfq"], "runs": 2, "run_for": 1.5, "warm_up": 0.5, "equal_within": 2.0},
            "-s noop -s cfq -n 2 --run-for 1.5 --warm-up 0.5 --equal-within 2",
        ),
        (
            {"workload": "dd if=/dev/zero of=file bs=1M count=20 conv=fsync", "scheduler": ["none", "cfq"], "runs": 2},
            "-w 'dd if=/dev/zero of=file bs=1M count=20 conv=fsync' -s none -s cfq -n 2",
        ),
    ],
)
def test_records_equal_those_of_the_command(command, tmp_path, arguments, options):
    records = tmp_path / "r.jsonl"
    subprocess.run([command, "compare", *shlex.split(options), "--records", records], check=True, capture_output=True)
    found = iosched.compare(**arguments)
    assert found.records() == records.read_bytes()
    assert iosched.Comparison.load(records).answer == found.answer
    report = subprocess.run([command, "report", records, "--json"], capture_output=True, text=True)
    assert report.returncode in (0, 2)


def test_job_files_and_traces_are_workloads(examples, samples):
    found = iosched.compare(examples / "priorities.fio", "nvme", ["none", "bfq"], runs=1, run_for=0.2)
    assert found.devices == ["nvme"]
    assert found.schedulers == ["none", "bfq"]
    trace = iosched.read_trace(samples / "pgbench.blktrace.0.zst", partial=True)
    assert len(iosched.compare(trace, "nvme", "none", runs=1).metrics) > 5


def test_other_libraries_read_tables(sample):
    verdicts = sample.verdicts
    table = pa.table(verdicts)
    assert table.num_rows == len(verdicts)
    assert table.column_names == verdicts.column_names
    polars_frame = pl.DataFrame(verdicts)
    assert polars_frame.shape == (len(verdicts), len(verdicts.column_names))
    pandas_frame = verdicts.to_pandas()
    assert isinstance(pandas_frame, pd.DataFrame)
    assert set(pandas_frame.verdict.dropna()) <= {"better", "worse", "equal", "cannot_tell", "more", "less"}
    assert verdicts.to_dict()["mean"] == pytest.approx(pandas_frame["mean"].tolist())
    assert verdicts["metric"].to_pylist() == pandas_frame.metric.tolist()
    with pytest.raises(KeyError, match="available: device"):
        verdicts["no such"]
    # The verdicts have the mean of the runs.
    runs = sample.metrics.to_pandas()
    mean_of_runs = runs[(runs.metric == "throughput") & (runs.scheduler == "bfq")].value.mean()
    mean = pandas_frame[(pandas_frame.metric == "throughput") & (pandas_frame.scheduler == "bfq")]["mean"].item()
    assert mean_of_runs == pytest.approx(mean)


def test_columns_are_not_copied(sample):
    def address(table):
        return pa.table(table).column("value").chunk(0).buffers()[1].address

    first, second = sample.metrics, sample.metrics
    assert address(first) == address(first)
    assert address(first) != address(second)


def test_comparisons_are_saved_loaded_and_shown(sample, tmp_path):
    path = tmp_path / "c.jsonl"
    sample.save(path)
    again = iosched.Comparison.load(path)
    assert (again.answer, again.doubts, again.command) == (sample.answer, sample.doubts, sample.command)
    assert pa.table(again.verdicts).equals(pa.table(sample.verdicts))
    assert pickle.loads(pickle.dumps(sample)).records() == sample.records()
    sample.report(tmp_path / "c.html")
    page = (tmp_path / "c.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    shown = sample._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert "bfq" in repr(sample)
    assert "runs last" in " ".join(sample.doubts)
    with pytest.raises(iosched.UsageError, match="read from a file"):
        again.run("bfq")
    with pytest.raises(FileNotFoundError):
        iosched.Comparison.load(tmp_path / "none.jsonl")
    with pytest.raises(FileNotFoundError):
        sample.save(tmp_path / "none" / "c.jsonl")
    (tmp_path / "bad.jsonl").write_text("nothing\n")
    with pytest.raises(iosched.UsageError, match=r"bad\.jsonl"):
        iosched.Comparison.load(tmp_path / "bad.jsonl")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.jsonl", "c.html", "c.jsonl"]


def test_run_repeats_one_run_of_a_comparison(sample):
    run = sample.run("bfq", run=1)
    metrics = sample.metrics.to_pandas()
    expected = metrics[(metrics.scheduler == "bfq") & (metrics.run == 1)].set_index("metric").value
    assert run.metrics == pytest.approx(expected.to_dict())
    with pytest.raises(iosched.UsageError, match="was not compared"):
        sample.run("cfq")
    with pytest.raises(iosched.UsageError, match="counted from 0"):
        sample.run("bfq", run=3)


def test_comparisons_in_several_threads_are_equal():
    alone = iosched.compare(TASKS, "sata-7200", ["noop", "cfq"], runs=3).records()
    found = []

    def compare():
        found.append(iosched.compare(TASKS, "sata-7200", ["noop", "cfq"], runs=3).records())

    threads = [threading.Thread(target=compare) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [alone] * 4


def test_ctrl_c_ends_comparisons_and_runs():
    long = {"name": "long", "tasks": [{"pid": 1, "name": "reader", "pattern": "random", "total": 50_000_000}]}
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        iosched.compare(long, "nvme", "none", runs=1)
    timer.join()
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        iosched.simulate(long, "nvme", "none", requests=False)
    assert time.monotonic() - began < 30


def test_other_threads_run_during_a_comparison():
    counted = [0]
    stop = threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    iosched.compare(scheduler=["cfq", "bfq"], runs=40)
    stop.set()
    thread.join()
    assert counted[0] > 20


def test_memory_of_many_runs_does_not_grow():
    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    workload = iosched.Workload.from_dict(TASKS)
    for _ in range(200):
        iosched.simulate(workload, "sata-7200", "cfq").requests.to_dict()
    before = resident()
    for _ in range(1000):
        iosched.simulate(workload, "sata-7200", "cfq").requests.to_dict()
    assert resident() - before < 16 << 20
