"""Values: devices, workloads and settings can be compared, hashed, pickled and printed; errors name the argument."""

import copy
import pickle

import numpy as np
import pyarrow as pa
import pytest

import iosched

FIXED = {
    "kind": "fixed",
    "fixed": {"depth": 4, "parallel": 1, "lat_ns": 100_000, "ns_per_sector": 500, "capacity_sectors": 2_097_152},
}
TASKS = {
    "name": "two",
    "tasks": [
        {"pid": 1, "name": "reader", "pattern": "random", "total": 200},
        {"pid": 2, "name": "writer", "op": "write", "pattern": "random", "total": 200},
    ],
}
JOB = "[reader]\nrw=randread\nbs=4k\nsize=1m\ndirect=1\n"


def test_devices_come_from_names_texts_and_dicts():
    disk = iosched.Device("sata-7200")
    assert (disk.name, disk.kind, disk.depth, disk.rotational) == ("sata-7200", "hdd", 31, True)
    again = iosched.Device.from_toml(disk.to_toml(), "sata-7200")
    assert again == disk
    assert hash(again) == hash(disk)
    assert disk != iosched.Device("nvme")
    fixed = iosched.Device.from_dict(FIXED, "mine")
    assert (fixed.kind, fixed.capacity_bytes, fixed.depth) == ("fixed", 1 << 30, 4)
    assert "sata-7200" in repr(disk)
    assert all(iosched.Device(name).name == name for name in iosched.devices())


@pytest.mark.parametrize(
    "value",
    [
        iosched.Device("nvme"),
        iosched.Device.from_dict(FIXED),
        iosched.Setting("cfq", slice_idle=0),
        iosched.Workload.sample(),
        iosched.Workload.from_job(JOB),
        iosched.Workload.from_dict(TASKS),
        iosched.Workload("dd if=/dev/zero of=file bs=1M count=10 conv=fsync"),
    ],
    ids=repr,
)
def test_pickled_values_are_equal(value):
    again = pickle.loads(pickle.dumps(value))
    assert again == value
    assert hash(again) == hash(value)
    assert repr(again) == repr(value)


def test_settings_have_one_text_form():
    setting = iosched.Setting("cfq", slice_idle=0, nr_requests=512)
    assert str(setting) == "cfq:slice_idle=0,nr_requests=512"
    assert setting == iosched.Setting("cfq:slice_idle=0,nr_requests=512")
    assert setting.scheduler == "cfq"
    assert {"cfq", "bfq", "mq-deadline", "none"} <= {name for name, _ in iosched.schedulers()}


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: iosched.Device("sata-720"), iosched.DeviceError, "did you mean sata-7200?"),
        (lambda: iosched.Device.from_toml("kind = 'hdd'"), iosched.DeviceError, "hdd"),
        (lambda: iosched.Device("./none.toml"), FileNotFoundError, "none.toml"),
        (lambda: iosched.Setting("cqf"), iosched.UsageError, "did you mean cfq?"),
        (lambda: iosched.Setting("cfq", slice_idel=0), iosched.UsageError, "did you mean slice_idle?"),
        (lambda: iosched.Setting("cfq", quantum=-1), iosched.UsageError, "quantum"),
        (lambda: iosched.Workload("./none.blktrace"), FileNotFoundError, "none.blktrace"),
        (lambda: iosched.Workload.from_job("[a]\nrw=sideways\n"), iosched.WorkloadError, "sideways"),
        (lambda: iosched.Workload.from_toml("name = 1"), iosched.WorkloadError, "tasks.toml"),
        (lambda: iosched.Workload.from_dict({"tasks": {1, 2}}), iosched.ArgumentTypeError, "set"),
        (lambda: iosched.compare(workload=3), TypeError, "a workload must be"),
        (lambda: iosched.compare(device=3), TypeError, "a device must be"),
        (lambda: iosched.compare(scheduler=3), TypeError, "a scheduler must be"),
        (lambda: iosched.compare(scheduler="cfq", runs=0), iosched.UsageError, "run"),
        # An empty list means the default schedulers.
        (lambda: iosched.compare(scheduler=[]), None, ""),
        (lambda: iosched.compare(scheduler="cfq:slice_idle=8..0"), iosched.UsageError, "a scan must begin with"),
        (lambda: iosched.compare(scheduler=["cfq", "cfq"]), iosched.UsageError, "cfq"),
        (lambda: iosched.compare(device=[]), iosched.UsageError, "device"),
        (lambda: iosched.compare(speed=2.0, replay="closed"), iosched.UsageError, "needs open replay"),
        (lambda: iosched.compare(replay="sideways"), iosched.UsageError, "closed or open"),
        (lambda: iosched.compare(equal_within=0), iosched.UsageError, "equal_within"),
        (lambda: iosched.compare(run_for=-1), iosched.UsageError, "run_for"),
        (lambda: iosched.compare(run_for=0), iosched.UsageError, "run_for"),
        (lambda: iosched.compare(run_for=1e-12), iosched.UsageError, "run_for"),
        (lambda: iosched.simulate(warm_up=1e-12), iosched.UsageError, "warm_up"),
        (lambda: iosched.compare(warm_up=float("nan")), iosched.UsageError, "warm_up"),
        (lambda: iosched.compare(machine="server-2010"), iosched.UsageError, "is only for applications"),
        (lambda: iosched.compare(baseline="noop", scheduler="cfq"), iosched.UsageError, "noop"),
        (lambda: iosched.simulate(warm_up=-1), iosched.UsageError, "warm_up"),
        (lambda: iosched.compare(seed=-1), iosched.UsageError, "seed"),
    ],
)
def test_wrong_arguments_raise_the_expected_error(call, error, text):
    if error is None:
        call()
        return
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


def test_exceptions_have_common_base_classes():
    assert issubclass(iosched.TraceError, iosched.WorkloadError)
    assert issubclass(iosched.WorkloadError, iosched.UsageError)
    assert issubclass(iosched.DeviceError, iosched.UsageError)
    assert issubclass(iosched.RunError, iosched.IoschedError)
    assert issubclass(iosched.UsageError, iosched.IoschedError)


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: iosched.compare(workload=3), "workload"),
        (lambda: iosched.compare(workload="./none.blktrace"), "workload"),
        (lambda: iosched.compare(workload={"tasks": [{"speed": 3}]}), "workload"),
        (lambda: iosched.compare(device=3), "device"),
        (lambda: iosched.compare(device="sata-720"), "device"),
        (lambda: iosched.compare(device=["nvme", "nvme"]), "device"),
        (lambda: iosched.compare(device={"kind": "hdd", "rpn": 7200}), "device"),
        (lambda: iosched.compare(scheduler=3), "scheduler"),
        (lambda: iosched.compare(scheduler="cqf"), "scheduler"),
        (lambda: iosched.compare(baseline="cqf"), "baseline"),
        (lambda: iosched.compare(runs=0), "runs"),
        (lambda: iosched.compare(runs="many"), "runs"),
        (lambda: iosched.compare(runs=2.5), "runs"),
        (lambda: iosched.compare(runs=True), "runs"),
        (lambda: iosched.compare(runs=-1), "runs"),
        (lambda: iosched.compare(seed=-1), "seed"),
        (lambda: iosched.compare(seed=1 << 64), "seed"),
        (lambda: iosched.compare(speed="fast"), "speed"),
        (lambda: iosched.compare(speed=True), "speed"),
        (lambda: iosched.compare(speed=float("nan")), "speed"),
        (lambda: iosched.compare(replay="sideways"), "replay"),
        (lambda: iosched.compare(replay=3), "replay"),
        (lambda: iosched.compare(machine=3), "machine"),
        (lambda: iosched.compare(equal_within=float("nan")), "equal_within"),
        (lambda: iosched.compare(run_for=float("inf")), "run_for"),
        (lambda: iosched.compare(warm_up=-1), "warm_up"),
        (lambda: iosched.compare(jobs=-1), "jobs"),
        (lambda: iosched.simulate(seed="x"), "seed"),
        (lambda: iosched.simulate(requests="yes"), "requests"),
        (lambda: iosched.simulate(scheduler="cqf"), "scheduler"),
        (lambda: iosched.tune(None, None, "cfq", "speed(x)"), "goal"),
        (lambda: iosched.tune(None, None, "cfq", 3), "goal"),
        (lambda: iosched.tune(None, None, "cfq", "finish", budget=1), "budget"),
        (lambda: iosched.tune(None, None, "cfq", "finish", vary=3), "vary"),
        (lambda: iosched.tune(None, None, "cfq", "finish", vary="slice_idel"), "vary"),
        (lambda: iosched.tune(None, None, "cfq", "finish", subject_to="x"), "subject_to"),
        (lambda: iosched.tune(None, None, "cfq", "finish", baseline="cqf"), "baseline"),
        (lambda: iosched.tune(None, None, "cfq", "finish", baseline=3), "baseline"),
        (lambda: iosched.tune(None, None, "cfq", "finish", fix=3), "fix"),
        (lambda: iosched.tune(None, None, "cfq", "finish", fix={3: 3}), "fix"),
        (lambda: iosched.space("cqf"), "scheduler"),
        (lambda: iosched.space("cfq", fix=["quantum"]), "fix"),
        (lambda: iosched.Device(3), "name"),
        (lambda: iosched.Device("sata-720"), "name"),
        (lambda: iosched.Device.from_toml(3), "text"),
        (lambda: iosched.Device.from_dict([]), "fields"),
        (lambda: iosched.Device.from_dict({"kind": float("nan")}), "fields"),
        (lambda: iosched.Setting(3), "text"),
        (lambda: iosched.Setting("cqf"), "text"),
        (lambda: iosched.Setting("cfq", quantum=-1), "quantum"),
        (lambda: iosched.Setting("cfq", quantum="1,slice_idle=0"), "quantum"),
        (lambda: iosched.Setting("cfq", quantum=range(0, 3)), "quantum"),
        (lambda: iosched.Workload(3), "path"),
        (lambda: iosched.Workload("./none.blktrace"), "path"),
        (lambda: iosched.Workload("./x.csv", format="sideways"), "format"),
        (lambda: iosched.Workload("./x.csv", columns="time_s,op"), "columns"),
        (lambda: iosched.Workload.from_job("[a]\nrw=sideways\n"), "text"),
        (lambda: iosched.Workload.from_dict({"tasks": {1, 2}}), "fields"),
        (lambda: iosched.read_trace(3), "source"),
        (lambda: iosched.read_trace("./none.csv"), "source"),
        (lambda: iosched.read_trace("./none.csv", format="sideways"), "format"),
        (lambda: iosched.read_trace("./none.csv", partial="yes"), "partial"),
        (lambda: iosched.Goal("speed(x)"), "text"),
        (lambda: iosched.Comparison.load("./none.jsonl"), "path"),
        (lambda: iosched.simulate().decisions, "decisions"),
        (lambda: iosched.simulate(requests=False).requests, "requests"),
        (lambda: iosched.simulate().requests["speed"], "name"),
        (lambda: iosched.sweep.SweepPlan(3), "plan"),
        (lambda: iosched.sweep.SweepPlan({"devises": []}), "plan"),
        (lambda: iosched.sweep.SweepPlan.open("./none.toml"), "path"),
        (lambda: iosched.sweep.run({}, "./none", jobs=0), "jobs"),
    ],
)
def test_an_error_names_the_argument(make, argument):
    with pytest.raises(iosched.IoschedError) as caught:
        make()
    assert caught.value.argument == argument, caught.value
    assert "note" not in repr(getattr(caught.value, "__notes__", ()))


@pytest.mark.parametrize(
    "make",
    [
        lambda long: iosched.read_trace(long),
        lambda long: iosched.Setting(long),
        lambda long: iosched.Setting("cfq", quantum=long),
        lambda long: iosched.Workload.from_toml(long),
        lambda long: iosched.Workload("./none.csv", columns=long),
        lambda long: iosched.doctor(long),
    ],
)
def test_an_error_quotes_at_most_200_characters(make):
    with pytest.raises(iosched.IoschedError, match="more characters") as caught:
        make("a" * 100_000)
    assert len(str(caught.value)) < 3000
    assert max(len(word) for word in str(caught.value).split()) <= 200 + len("…")


def test_tunables_come_before_the_version_in_a_setting():
    assert str(iosched.Setting("bfq @ 6.1", slice_idle=0)) == "bfq:slice_idle=0 @ 6.1"


def test_errors_are_also_python_exceptions(tmp_path):
    with pytest.raises(iosched.MissingFileError, match=r"none\.csv") as missing:
        iosched.read_trace(tmp_path / "none.csv")
    assert isinstance(missing.value, FileNotFoundError)
    with pytest.raises(iosched.FileError) as directory:
        iosched.Comparison.load(tmp_path)
    assert isinstance(directory.value, OSError)
    with pytest.raises(iosched.MissingFileError):
        iosched.compare(scheduler="none", runs=1).save(tmp_path / "none" / "c.jsonl")
    with pytest.raises(iosched.ColumnError, match=r'^there is no column "x"; available: ') as column:
        _ = iosched.simulate().requests["x"]
    assert isinstance(column.value, KeyError)
    assert issubclass(iosched.UsageError, ValueError)
    assert issubclass(iosched.ArgumentTypeError, TypeError)
    again = pickle.loads(pickle.dumps(missing.value))
    assert (type(again), str(again), again.argument) == (iosched.MissingFileError, str(missing.value), "source")


def test_numpy_numbers_are_accepted():
    plain = iosched.simulate(TASKS, FIXED, "cfq", seed=5, warm_up=0.5)
    assert iosched.simulate(TASKS, FIXED, "cfq", seed=np.int64(5), warm_up=np.float32(0.5)).metrics == plain.metrics
    tasks = {**TASKS, "tasks": [{**task, "total": np.int64(task["total"])} for task in TASKS["tasks"]]}
    assert iosched.simulate(tasks, FIXED, "cfq", seed=5, warm_up=0.5).metrics == plain.metrics
    for four in [np.int64(4), 4.0, np.float64(4)]:
        assert iosched.Setting("cfq", quantum=four) == iosched.Setting("cfq", quantum=4)
        assert iosched.space("cfq", fix={"quantum": four}) == iosched.space("cfq", fix={"quantum": 4})


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_runs_and_tables_pickle_and_copy(duplicate):
    run = iosched.simulate(scheduler="cfq", decisions=True)
    copied = duplicate(run)
    for name in ["metrics", "ios", "finished_ns", "notes"]:
        assert getattr(copied, name) == getattr(run, name)
    assert repr(copied) == repr(run)
    for name in ["requests", "decisions"]:
        assert pa.table(getattr(copied, name)).equals(pa.table(getattr(run, name)))
    assert duplicate(copied).requests.to_dict() == run.requests.to_dict()
    bare = duplicate(iosched.simulate(requests=False))
    with pytest.raises(iosched.UsageError, match="requests=True"):
        _ = bare.requests
    for table in [run.requests, iosched.compare(scheduler=["cfq", "bfq"], runs=2).verdicts]:
        assert pa.table(duplicate(table)).equals(pa.table(table))
        assert pa.table(duplicate(table)).schema == pa.table(table).schema
