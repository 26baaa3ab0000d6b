"""Devices, workloads and settings are plain values: comparable, hashable, picklable, printable; wrong ones are told."""

import pickle

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


def test_devices_by_name_text_and_dict_are_values():
    disk = iosched.Device("sata-7200")
    assert (disk.name, disk.kind, disk.depth, disk.rotational) == ("sata-7200", "hdd", 31, True)
    again = iosched.Device.from_toml(disk.to_toml(), "sata-7200")
    assert again == disk
    assert hash(again) == hash(disk)
    assert disk != iosched.Device("nvme")
    made = iosched.Device.from_dict(FIXED, "mine")
    assert (made.kind, made.capacity_bytes, made.depth) == ("fixed", 1 << 30, 4)
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
def test_values_come_back_from_a_pickle(value):
    again = pickle.loads(pickle.dumps(value))
    assert again == value
    assert hash(again) == hash(value)
    assert repr(again) == repr(value)


def test_settings_are_written_one_way():
    setting = iosched.Setting("cfq", slice_idle=0, nr_requests=512)
    assert str(setting) == "cfq:slice_idle=0,nr_requests=512"
    assert setting == iosched.Setting("cfq:slice_idle=0,nr_requests=512")
    assert setting.scheduler == "cfq"
    assert {"cfq", "bfq", "mq-deadline", "none"} <= {name for name, _ in iosched.schedulers()}


@pytest.mark.parametrize(
    ("make", "error", "told"),
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
        (lambda: iosched.Workload.from_dict({"tasks": {1, 2}}), TypeError, "set"),
        (lambda: iosched.compare(workload=3), TypeError, "a workload is"),
        (lambda: iosched.compare(device=3), TypeError, "a device is"),
        (lambda: iosched.compare(scheduler=3), TypeError, "a scheduler is"),
        (lambda: iosched.compare(scheduler="cfq", runs=0), iosched.UsageError, "run"),
        (lambda: iosched.compare(scheduler=[]), None, ""),
        (lambda: iosched.compare(scheduler="cfq:slice_idle=8..0"), iosched.UsageError, "a scan goes up"),
        (lambda: iosched.compare(scheduler=["cfq", "cfq"]), iosched.UsageError, "cfq"),
        (lambda: iosched.compare(device=[]), iosched.UsageError, "device"),
        (lambda: iosched.compare(speed=2.0, replay="closed"), iosched.UsageError, "needs open replay"),
        (lambda: iosched.compare(replay="sideways"), iosched.UsageError, "closed or open"),
        (lambda: iosched.compare(equal_within=0), iosched.UsageError, "equal_within"),
        (lambda: iosched.compare(run_for=-1), iosched.UsageError, "run_for"),
        (lambda: iosched.compare(warm_up=float("nan")), iosched.UsageError, "warm_up"),
        (lambda: iosched.compare(machine="server-2010"), iosched.UsageError, "is for applications"),
        (lambda: iosched.compare(baseline="noop", scheduler="cfq"), iosched.UsageError, "noop"),
        (lambda: iosched.simulate(warm_up=-1), iosched.UsageError, "warm_up"),
        (lambda: iosched.compare(seed=-1), OverflowError, ""),
    ],
)
def test_what_is_wrong_is_told_with_what_would_be_right(make, error, told):
    if error is None:
        make()
        return
    with pytest.raises(error) as caught:
        make()
    assert told in str(caught.value)


def test_exceptions_are_of_one_family():
    assert issubclass(iosched.TraceError, iosched.WorkloadError)
    assert issubclass(iosched.WorkloadError, iosched.UsageError)
    assert issubclass(iosched.DeviceError, iosched.UsageError)
    assert issubclass(iosched.RunError, iosched.IoschedError)
    assert issubclass(iosched.UsageError, iosched.IoschedError)
