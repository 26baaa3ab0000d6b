"""Runs: the times of each I/O, and the decisions of the scheduler."""

import json
from collections import Counter

import pytest

import iosched

# I/Os of the sample workload, as `iosched` reports them.
SAMPLE_IOS = 7638


def test_equal_arguments_give_equal_runs():
    first, second, other = (iosched.simulate(scheduler="cfq", seed=seed) for seed in (5, 5, 6))
    assert first.requests.to_dict() == second.requests.to_dict()
    assert first.requests.to_dict() != other.requests.to_dict()
    assert first.metrics == second.metrics
    assert iosched.simulate(scheduler="cfq", seed=5, requests=False).metrics == first.metrics


@pytest.mark.parametrize("scheduler", [name for name, _ in iosched.schedulers()])
def test_every_io_has_a_row_and_its_times_are_in_order(scheduler):
    run = iosched.simulate(scheduler=scheduler)
    rows = run.requests.to_pandas()
    assert run.ios == SAMPLE_IOS
    assert rows.completed_ns.notna().all()
    assert (rows.completed_ns >= rows.submitted_ns).all()
    assert rows.completed_ns.max() == run.finished_ns
    data = rows[rows.op != "flush"]
    # A write that needs a flush may have no dispatch time, because the queue handles it separately.
    dispatched = data[data.dispatched_ns.notna()]
    assert len(dispatched) > 0.4 * len(data)
    assert (dispatched.dispatched_ns >= dispatched.submitted_ns).all()
    assert (dispatched.dispatched_ns <= dispatched.completed_ns).all()
    assert rows.submitted_ns.is_monotonic_increasing
    # The `request` of a merged bio is the row of the bio that began the request.
    merged = rows[rows.request != rows.index]
    first_bios = rows.loc[merged.request]
    assert (first_bios.request.to_numpy() == first_bios.index.to_numpy()).all()
    assert set(rows.process) >= {"postgres"}


def test_runs_record_decisions_on_request():
    run = iosched.simulate(scheduler="cfq", decisions=True, requests=False)
    decisions = run.decisions.to_pandas()
    assert {"insert", "dispatch", "complete", "idle_arm", "expire"} <= set(decisions.event)
    assert decisions.time_ns.is_monotonic_increasing
    with pytest.raises(iosched.UsageError, match="requests=True"):
        _ = run.requests
    with pytest.raises(iosched.UsageError, match="decisions=True"):
        _ = iosched.simulate().decisions


def test_reason_of_a_dispatch_is_the_decision_before_it():
    run = iosched.simulate(None, "sata-7200", "cfq", decisions=True)
    rows, log = run.requests.to_dict(), run.decisions.to_dict()
    queue_events = {"insert", "merge", "request_merge", "wait", "requeue", "complete", "kick", "exit", "dispatch"}
    expected, last = {}, None
    for event, text in zip(log["event"], log["decision"], strict=True):
        if event == "dispatch":
            expected.setdefault(json.loads(text)["id"], last)
        elif event not in queue_events:
            last = event
    # The row of the bio that began each dispatched request.
    numbers = range(len(rows["request"]))
    first_bios = [row for row in numbers if rows["request"][row] == row and rows["dispatched_ns"][row] is not None]
    reasons = [rows["reason"][row] for row in first_bios]
    # A write with a flush before it is dispatched as another request than that of its row.
    differ = Counter(reasons) - Counter(expected.values())
    assert differ.total() <= 2
    assert len(reasons) > 4000
    assert {"active", "slice"} & set(reasons)
    plain = iosched.simulate(None, "sata-7200", "noop").requests.to_dict()
    assert set(plain["reason"]) == {None}
