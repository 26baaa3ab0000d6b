"""Elevators in Python: equal decisions give the same run as in Rust, and errors name the wrong method."""

import functools
import gc
import os
import signal
import threading
import time
import weakref

import pytest

import iosched

TASKS = {
    "tasks": [
        {"pid": pid, "name": "reader", "pattern": "random", "range": [0, 1 << 30], "nr_sectors": 8, "total": 200}
        for pid in range(1, 17)
    ]
}


class Fifo(iosched.Elevator):
    def __init__(self):
        self.queue = []
        self.dispatched = 0

    def insert(self, now_ns, request):
        self.queue.append(request)

    def dispatch(self, now_ns):
        if self.dispatched == len(self.queue):
            return None
        self.dispatched += 1
        return self.queue[self.dispatched - 1]


class Batch(iosched.Elevator):
    multi_queue = True

    def batch(self, now_ns, arrived):
        return arrived


class Elevator(iosched.Elevator):
    """Serves requests by ascending sector, and then starts again at the lowest sector."""

    name = "up"

    def __init__(self, start=0):
        self.queue = []
        self.head = start

    def insert(self, now_ns, request):
        self.queue.append(request)

    def dispatch(self, now_ns):
        if not self.queue:
            return None
        ahead = [request for request in self.queue if request.sector >= self.head] or self.queue
        first = min(ahead, key=lambda request: request.sector)
        self.queue.remove(first)
        self.head = first.sector + first.nr_sectors
        return first


def rows(run):
    return run.requests.to_dict()


def test_equal_decisions_give_equal_runs():
    # Without merges, noop serves requests in the order of their arrival.
    fifo, noop = (iosched.simulate(TASKS, "sata-7200", scheduler, seed=3) for scheduler in (Fifo, "noop"))
    assert rows(fifo) == rows(noop)
    assert fifo.metrics == noop.metrics


def test_batches_are_dispatched_in_their_order():
    run = iosched.simulate(TASKS, "sata-7200", Batch)
    dispatched = rows(run)["dispatched_ns"]
    assert run.ios == 16 * 200
    assert dispatched == sorted(dispatched)


def test_comparisons_accept_elevator_classes():
    comparison = iosched.compare(TASKS, "sata-7200", [Fifo, Elevator], runs=3)
    assert comparison.schedulers == ["fifo", "up"]
    assert comparison.baseline == "fifo"
    assert "up" in str(comparison.verdicts.to_dict()["scheduler"])
    run = comparison.run(Elevator, run=1)
    assert run.ios == 16 * 200


def test_comparisons_accept_an_elevator_with_arguments():
    late = functools.partial(Elevator, start=1 << 30)
    comparison = iosched.compare(TASKS, "sata-7200", ["noop", late], runs=1)
    assert comparison.schedulers == ["noop", "up"]


def test_dispatch_can_wait_until_a_time():
    class Patient(Fifo):
        def __init__(self):
            super().__init__()
            self.calls = []
            self.until = 0

        def dispatch(self, now_ns):
            self.calls.append(now_ns)
            if now_ns < 50_000_000:
                return 50_000_000
            return super().dispatch(now_ns)

    run = iosched.simulate(TASKS, "sata-7200", Patient)
    assert min(rows(run)["dispatched_ns"]) == 50_000_000


def test_policy_sees_completions():
    seen = []

    class Listening(Fifo):
        def complete(self, now_ns, request):
            seen.append((now_ns, request.number))

    run = iosched.simulate(TASKS, "sata-7200", Listening)
    assert sorted(number for _, number in seen) == list(range(run.ios))
    assert sorted(now for now, _ in seen) == sorted(rows(run)["completed_ns"])


def test_requests_describe_the_io_and_are_read_only():
    seen = []

    class Looking(Fifo):
        def insert(self, now_ns, request):
            seen.append(request)
            super().insert(now_ns, request)

    task = {
        "pid": 7,
        "name": "w",
        "op": "write",
        "pattern": "seq",
        "sync": True,
        "nr_sectors": 16,
        "total": 5,
        "class": "be",
        "level": 2,
    }
    iosched.simulate({"tasks": [task]}, "sata-7200", Looking)
    first = seen[0]
    assert (first.number, first.op, first.nr_sectors, first.sync, first.ioprio) == (0, "write", 16, True, "be/2")
    assert "write of 16 sectors" in repr(first)
    with pytest.raises(AttributeError):
        first.sector = 0


def broken(method, body):
    return type("Broken", (Fifo,), {method: body})


def raises(self, now_ns, request=None):
    raise ZeroDivisionError("mine")


def twice(self, now_ns):
    return self.queue[0] if self.queue else None


@pytest.mark.parametrize(
    ("method", "body", "text"),
    [
        ("insert", raises, r"insert at .* ms raised ZeroDivisionError\('mine'\)"),
        ("dispatch", raises, r"dispatch at .* ms raised ZeroDivisionError\('mine'\)"),
        ("complete", raises, r"complete at .* ms raised ZeroDivisionError"),
        ("batch", raises, r"batch at .* ms raised ZeroDivisionError"),
        ("dispatch", twice, r"dispatch at .* returned <iosched.Request 0: .*>, but this request is not queued"),
        ("dispatch", lambda self, now_ns: "soon", r"returned 'soon'; it must return a queued request, None, or a time"),
        ("dispatch", lambda self, now_ns: True, "returned True; it must return"),
        ("dispatch", lambda self, now_ns: now_ns, "is not in the future"),
        ("batch", lambda self, now_ns, arrived: arrived * 2, "this request is not queued"),
        ("batch", lambda self, now_ns, arrived: [None], "returned None; it must return"),
        ("dispatch", lambda self: None, r"raised TypeError"),
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        lambda policy: iosched.simulate(TASKS, "sata-7200", policy),
        lambda policy: iosched.compare(TASKS, "sata-7200", ["noop", policy], runs=2),
        lambda policy: iosched.tune(TASKS, "sata-7200", [policy, "deadline"], "p99(sync)", budget=30),
    ],
    ids=["simulate", "compare", "tune"],
)
def test_policy_errors_have_the_method_time_and_queue(method, body, text, call):
    policy = broken(method, body=body)
    with pytest.raises(iosched.PolicyError, match=text) as caught:
        call(policy)
    error = caught.value
    assert error.method == method
    assert error.time_ns >= 0
    assert type(error.policy).__name__ == "Broken"
    assert all(isinstance(request, iosched.Request) for request in error.queued)
    if "raised" in text:
        assert error.__cause__ is not None
    # The failed run has no effect on the next run.
    assert iosched.simulate(TASKS, "sata-7200", Fifo).ios == 16 * 200


def test_requests_of_another_run_are_refused():
    old_requests = []

    class Keeping(Fifo):
        def insert(self, now_ns, request):
            old_requests.append(request)
            super().insert(now_ns, request)

    iosched.simulate(TASKS, "sata-7200", Keeping)
    with pytest.raises(iosched.PolicyError, match="is from another run"):
        iosched.simulate(TASKS, "sata-7200", broken("dispatch", body=lambda self, now_ns: old_requests[5]))


def test_policy_that_never_dispatches_is_an_error():
    with pytest.raises(iosched.RunError, match="broken"):
        iosched.simulate(TASKS, "sata-7200", broken("dispatch", body=lambda self, now_ns: None))


@pytest.mark.parametrize(
    ("elevator", "error", "text"),
    [
        (Fifo(), TypeError, "give the class"),
        (7, TypeError, "not int"),
        (
            dict,
            iosched.UsageError,
            "dict is not an elevator; an elevator has the methods insert and dispatch, or batch",
        ),
        (type("noop", (Fifo,), {}), iosched.UsageError, 'a scheduler named "noop" already exists'),
        (type("A b", (Fifo,), {}), iosched.UsageError, "is not a valid scheduler name"),
        (functools.partial(Elevator, end=1), TypeError, "unexpected keyword argument 'end'"),
    ],
)
def test_wrong_elevators_are_refused(elevator, error, text):
    with pytest.raises(error, match=text):
        iosched.simulate(TASKS, "sata-7200", elevator)


def test_ctrl_c_ends_a_policy_that_never_ends():
    class Slow(Fifo):
        def dispatch(self, now_ns):
            return now_ns + 1

    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        iosched.simulate(TASKS, "sata-7200", Slow)
    assert time.monotonic() - began < 5


def test_threads_run_separate_policies():
    found = {}

    def run(name, policy):
        try:
            found[name] = iosched.simulate(TASKS, "sata-7200", policy, seed=9).finished_ns
        except iosched.PolicyError as error:
            found[name] = error

    bad = broken("dispatch", body=raises)
    threads = [threading.Thread(target=run, args=(n, bad if n % 2 else Fifo)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = iosched.simulate(TASKS, "sata-7200", "noop", seed=9).finished_ns
    assert [found[n] for n in (0, 2, 4)] == [expected] * 3
    assert all(isinstance(found[n], iosched.PolicyError) for n in (1, 3, 5))


def test_policies_are_freed_after_a_run():
    alive = weakref.WeakSet()

    class Counted(Fifo):
        def __init__(self):
            super().__init__()
            alive.add(self)

    for _ in range(20):
        iosched.simulate(TASKS, "sata-7200", Counted)
    gc.collect()
    assert len(alive) == 0
