"""Elevators in Python: subclass `Elevator`, and give the class wherever the name of a scheduler goes."""

from __future__ import annotations

from collections.abc import Iterable

from ._native import Request


class Elevator:
    """An elevator: which request next, and whether to wait for a better one.

    Write `insert` and `dispatch`, which are asked for each request, or `batch`, which is asked for many at once and
    is faster. Every run has an elevator of its own: the class is called without arguments (`functools.partial` gives
    some), and only in the run's virtual time, which is in ns. The queue in front of it joins bios that go on behind a
    queued request to that request; nothing else is merged.

    >>> import iosched
    >>> class Newest(iosched.Elevator):
    ...     def __init__(self):
    ...         self.requests = []
    ...     def insert(self, now_ns, request):
    ...         self.requests.append(request)
    ...     def dispatch(self, now_ns):
    ...         return self.requests.pop() if self.requests else None
    >>> iosched.simulate(None, "sata-7200", Newest).ios
    7638
    """

    name: str | None = None
    """What it is called in tables and records; the class' name in small letters if there is none."""

    multi_queue: bool = False
    """Whether it stands in the multi-queue layer of today's kernels, or in the single-queue layer of old."""

    def insert(self, now_ns: int, request: Request) -> None:
        """Takes a request in. It is queued until `dispatch` returns it."""
        raise NotImplementedError

    def dispatch(self, now_ns: int) -> Request | int | None:
        """The queued request that the device gets next; or None, to be asked again when a request comes or is done; or
        a time in ns, to be asked again then as well."""
        raise NotImplementedError

    def batch(self, now_ns: int, arrived: list[Request]) -> Iterable[Request] | int | None:
        """Instead of both: takes in what has come since the last call, and returns what the device gets next, in this
        order; it is asked again once all of that is given out. None and times are as of `dispatch`."""
        raise NotImplementedError

    def complete(self, now_ns: int, request: Request) -> None:
        """The device is done with a request. Only asked if a subclass has it."""
