"""One run, I/O by I/O."""

import pytest

import iosched

# What the sample has, as `iosched` says.
SAMPLE_IOS = 7638


def test_a_run_is_a_function_of_its_arguments():
    one, two, other = (iosched.simulate(scheduler="cfq", seed=seed) for seed in (5, 5, 6))
    assert one.requests.to_dict() == two.requests.to_dict()
    assert one.requests.to_dict() != other.requests.to_dict()
    assert one.figures == two.figures
    assert iosched.simulate(scheduler="cfq", seed=5, requests=False).figures == one.figures


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
