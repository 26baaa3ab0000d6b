"""One run, I/O by I/O."""

import json
from collections import Counter

import pytest

import iosched

# What the sample has, as `iosched` says.
SAMPLE_IOS = 7638


def test_a_run_is_a_function_of_its_arguments():
    one, two, other = (iosched.simulate(scheduler="cfq", seed=seed) for seed in (5, 5, 6))
    assert one.requests.to_dict() == two.requests.to_dict()
    assert one.requests.to_dict() != other.requests.to_dict()
    assert one.metrics == two.metrics
    assert iosched.simulate(scheduler="cfq", seed=5, requests=False).metrics == one.metrics


@pytest.mark.parametrize("scheduler", [name for name, _ in iosched.schedulers()])
def test_every_io_has_a_row_and_its_times_are_in_order(scheduler):
    run = iosched.simulate(scheduler=scheduler)
    rows = run.requests.to_pandas()
    assert run.ios == SAMPLE_IOS
    assert rows.completed_ns.notna().all()
    assert (rows.completed_ns >= rows.submitted_ns).all()
    assert rows.completed_ns.max() == run.finished_ns
    data = rows[rows.op != "flush"]
    # A write that flushes first or after goes through the queue's own machinery.
    dispatched = data[data.dispatched_ns.notna()]
    assert len(dispatched) > 0.4 * len(data)
    assert (dispatched.dispatched_ns >= dispatched.submitted_ns).all()
    assert (dispatched.dispatched_ns <= dispatched.completed_ns).all()
    assert rows.submitted_ns.is_monotonic_increasing
    # Who joined another's request shares its times.
    joined = rows[rows.request != rows.index]
    founders = rows.loc[joined.request]
    assert (founders.request.to_numpy() == founders.index.to_numpy()).all()
    assert set(rows.process) >= {"postgres"}


def test_decisions_are_told():
    run = iosched.simulate(scheduler="cfq", decisions=True, requests=False)
    decisions = run.decisions.to_pandas()
    assert {"insert", "dispatch", "complete", "idle_arm", "expire"} <= set(decisions.event)
    assert decisions.time_ns.is_monotonic_increasing
    with pytest.raises(iosched.UsageError, match="requests=True"):
        _ = run.requests
    with pytest.raises(iosched.UsageError, match="decisions=True"):
        _ = iosched.simulate().decisions


def test_the_reason_of_a_dispatch_is_what_was_decided_before():
    run = iosched.simulate(None, "sata-7200", "cfq", decisions=True)
    rows, told = run.requests.to_dict(), run.decisions.to_dict()
    queues_own = {"insert", "merge", "request_merge", "wait", "requeue", "complete", "kick", "exit", "dispatch"}
    expected, last = {}, None
    for event, text in zip(told["event"], told["decision"], strict=True):
        if event == "dispatch":
            expected.setdefault(json.loads(text)["id"], last)
        elif event not in queues_own:
            last = event
    # Of each request that was dispatched, its founder's row.
    numbers = range(len(rows["request"]))
    founders = [row for row in numbers if rows["request"][row] == row and rows["dispatched_ns"][row] is not None]
    reasons = [rows["reason"][row] for row in founders]
    # A write with a flush before it is dispatched as another request than the one it is a row of.
    differ = Counter(reasons) - Counter(expected.values())
    assert differ.total() <= 2
    assert len(reasons) > 4000
    assert {"active", "slice"} & set(reasons)
    plain = iosched.simulate(None, "sata-7200", "noop").requests.to_dict()
    assert set(plain["reason"]) == {None}
