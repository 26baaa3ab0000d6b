"""Elevators in Python: subclass `Elevator`, and pass the class instead of the name of a scheduler."""

from __future__ import annotations

from collections.abc import Iterable

from ._native import Request


class Elevator:
    """An elevator: it chooses the next request, or waits for a better one.

    Write `insert` and `dispatch`, which are called for each request, or `batch`, which is called for many requests at
    once and is faster. Every run creates a new object: the class is called without arguments (`functools.partial` gives
    it some). Times are virtual, in ns from the start of the run. The queue before the elevator joins a bio to a queued
    request if the bio begins at the end of that request. It merges no other bios.

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
    """The name in tables and records; None means the name of the class in small letters."""

    multi_queue: bool = False
    """True for the multi-queue layer of today's kernels (blk-mq), False for the older single-queue layer."""

    def insert(self, now_ns: int, request: Request) -> None:
        """A request arrives. It is queued until `dispatch` returns it."""
        raise NotImplementedError

    def dispatch(self, now_ns: int) -> Request | int | None:
        """Returns the queued request that the device gets next. If it returns None, it is called again at the next
        arrival or completion. If it returns a time in ns, it is also called at that time."""
        raise NotImplementedError

    def batch(self, now_ns: int, arrived: list[Request]) -> Iterable[Request] | int | None:
        """Replaces `insert` and `dispatch`. It gets the requests that arrived since the last call, and returns the next
        requests for the device in order. It is called again when the device has got all of them. None and times are as
        for `dispatch`."""
        raise NotImplementedError

    def complete(self, now_ns: int, request: Request) -> None:
        """The device has completed a request. It is called only if a subclass has it."""
