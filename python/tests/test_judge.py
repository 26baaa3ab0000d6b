"""Report cards of schedulers, also of schedulers in Python."""

import pytest

import iosched

QUICK = {"tries": 1, "operations": 10_000, "comparisons": False}


class Fifo(iosched.Elevator):
    """Serves requests in the order of their arrival."""

    def __init__(self):
        self.queue = []

    def insert(self, now_ns, request):
        self.queue.append(request)

    def dispatch(self, now_ns):
        return self.queue.pop(0) if self.queue else None


def test_a_card_has_a_row_for_each_case():
    judged = iosched.judge("bfq", **QUICK)
    shares = judged.shares.to_dict()
    assert len(shares["first"]) == 12
    assert all(0 <= share <= 1 for share in shares["first"])
    assert judged.waits.to_dict()["op"] == ["read", "write"] * 2
    assert judged.rules.to_dict()["violation"] == [None]
    assert judged.markdown().startswith("## bfq\n")
    assert len(judged.comparisons) == len(judged.differences) == 0


def test_an_elevator_in_python_is_judged():
    judged = iosched.judge(["noop", Fifo], **QUICK)
    rules = judged.rules.to_dict()
    assert rules["scheduler"] == ["noop", "fifo"]
    assert rules["violation"] == [None, None]
    assert repr(judged) == "<iosched.Judgement of noop, fifo>"


def test_an_elevator_that_loses_requests_breaks_a_rule():
    class Lossy(Fifo):
        def insert(self, now_ns, request):
            if request.number % 100:
                super().insert(now_ns, request)

    judged = iosched.judge(Lossy, **QUICK)
    assert judged.rules.to_dict()["violation"][0]
    assert len(judged.shares) == 0


def test_errors_name_the_wrong_argument():
    with pytest.raises(iosched.UsageError, match='there is no scheduler "fifo"'):
        iosched.judge("fifo", **QUICK)
    with pytest.raises(iosched.UsageError, match="runs: 1 is too few"):
        iosched.judge("bfq", runs=1)
