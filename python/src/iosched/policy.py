"""Elevators in Python: subclass `Elevator`, and pass the class instead of the name of a scheduler."""

from __future__ import annotations

from collections.abc import Iterable

from ._native import Request


class Elevator:
    """An elevator: it chooses the next request, or waits for a better request.

    Write `insert` and `dispatch`, which iosched calls for each request. Or write `batch`, which iosched calls for many
    requests at once. `batch` is faster. For every run, iosched creates a new object: it calls the class without
    arguments. To pass arguments, use `functools.partial`. Times are virtual, in ns from the start of the run. The queue
    before the elevator joins a bio to a queued request if the bio begins at the end of that request. The queue merges
    no other bios.

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
    """The name in tables and records. None means the name of the class in lower case."""

    multi_queue: bool = False
    """True for the multi-queue layer of today's kernels (blk-mq), False for the older single-queue layer."""

    def insert(self, now_ns: int, request: Request) -> None:
        """Gets a new request. The request is queued until `dispatch` returns it."""
        raise NotImplementedError

    def dispatch(self, now_ns: int) -> Request | int | None:
        """Returns the queued request that the device gets next. After None, iosched calls `dispatch` again at the next
        arrival or completion. After a time in ns, iosched also calls `dispatch` at that time."""
        raise NotImplementedError

    def batch(self, now_ns: int, arrived: list[Request]) -> Iterable[Request] | int | None:
        """Replaces `insert` and `dispatch`. It gets the requests that arrived since the last call, and returns the next
        requests for the device, in order. iosched calls `batch` again when the device has got all of these requests.
        None and times have the same meaning as for `dispatch`."""
        raise NotImplementedError

    def complete(self, now_ns: int, request: Request) -> None:
        """Gets a request that the device has completed. iosched calls this method only if a subclass defines it."""
