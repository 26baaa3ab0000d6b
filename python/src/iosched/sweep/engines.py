"""Engines that run units: threads of this process, Ray, or Dask. An engine takes batches of units
and returns the result of each batch, in any order. If a worker is lost, another worker runs its
batch again. Running a unit twice does no harm, because both runs write the same file.
"""

from __future__ import annotations

import os
import queue
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, TypeAlias

from .._native import SweepUnit
from ..errors import IoschedError, IoschedWarning, UsageError
from .store import Store, needed, reader


@dataclass(frozen=True)
class Batch:
    """Units that one worker runs."""

    workload: str
    """The name of the first workload, and the number of the other workloads."""
    ids: list[str]
    units: list[str]
    """The units as JSON."""


Said: TypeAlias = list[tuple[str, str | None]]
"""The id of each unit, and the error if the unit failed."""
Engine: TypeAlias = Callable[[Iterable[Batch]], Iterator[tuple[Batch, Said]]]

ASKED_EVERY_S = 2.0
"""Time between two queries for the number of workers of a cluster."""
WITHOUT_WORKERS_S = 15.0
"""Time without a worker after which a sweep on a cluster warns."""
LOST_MAX = 100
"""Number of lost workers after which a batch fails, because it may be the cause."""


def work(units: list[str], root: str, jobs: int) -> Said:
    """Runs the units of a batch and writes their results. Workers call this."""
    store = Store(root)
    said: Said = []
    for text in units:
        unit = SweepUnit.from_json(text)
        try:
            runs, verdicts = unit.make(reader(unit), jobs=jobs)
        except (IoschedError, OSError) as error:
            said.append((unit.id, str(error)))
            continue
        store.put_unit(unit, runs, verdicts)
        said.append((unit.id, None))
    return said


def kept_busy(
    batches: Iterable[Batch],
    under_way: Sized,
    most: Callable[[], int],
    submit: Callable[[Batch], object],
    finished: Callable[[], Iterator[tuple[Batch, Said]]],
) -> Iterator[tuple[Batch, Said]]:
    """Submits the batches, with a limit on batches in flight, and yields finished ones."""
    for batch in batches:
        while len(under_way) >= most():
            yield from finished()
        submit(batch)
    while under_way:
        yield from finished()


def threads(root: str, jobs: int) -> Engine:
    """Runs batches in threads of this process. A unit releases the GIL while it runs."""

    def go(batches: Iterable[Batch]) -> Iterator[tuple[Batch, Said]]:
        pool = ThreadPoolExecutor(jobs, thread_name_prefix="sweep")
        under_way: dict[Future[Said], Batch] = {}

        def submit(batch: Batch) -> None:
            under_way[pool.submit(work, batch.units, root, 1)] = batch

        def finished() -> Iterator[tuple[Batch, Said]]:
            # The timeout lets the main thread handle Ctrl-C.
            ended = wait(under_way, timeout=0.1, return_when=FIRST_COMPLETED).done
            for future in ended:
                yield under_way.pop(future), future.result()

        try:
            yield from kept_busy(batches, under_way, lambda: 2 * jobs, submit, finished)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    return go


class Window:
    """Limits the batches in flight, with enough batches that no worker waits.

    The limit depends on the number of workers, which changes. Every few seconds, it is computed again. If there are
    no workers for some time, the window warns with the text `without`.
    """

    def __init__(self, workers: Callable[[], int], without: str) -> None:
        self._workers = workers
        self._without = without
        self._asked = -ASKED_EVERY_S
        self._most = 0
        self._idle_since: float | None = None
        self._has_warned = False

    def most(self) -> int:
        now = time.monotonic()
        if now - self._asked >= ASKED_EVERY_S:
            self._asked = now
            workers = self._workers()
            self._most = max(4, 3 * workers)
            self._warn(workers, now)
        return self._most

    def _warn(self, workers: int, now: float) -> None:
        if workers:
            self._idle_since, self._has_warned = None, False
        elif self._idle_since is None:
            self._idle_since = now
        elif not self._has_warned and now - self._idle_since >= WITHOUT_WORKERS_S:
            self._has_warned = True
            warnings.warn(f"the sweep waits: {self._without}", IoschedWarning, stacklevel=2)


class Lost:
    """Counts the lost workers of each batch."""

    def __init__(self) -> None:
        self._times: dict[str, int] = {}

    def times(self, batch: Batch) -> int:
        return self._times.get(batch.ids[0], 0)

    def once_more(self, batch: Batch, submit: Callable[[Batch], object]) -> Iterator[tuple[Batch, Said]]:
        """Submits the batch again, or reports that it failed."""
        self._times[batch.ids[0]] = self.times(batch) + 1
        if self.times(batch) < LOST_MAX:
            submit(batch)
        else:
            yield batch, [(one, f"{LOST_MAX} workers were lost while they ran this batch") for one in batch.ids]


def ray(root: str, jobs: int | None, address: str | None, cpus: int) -> Engine:
    """Runs batches on a cluster of Ray, whose dashboard shows the names of workloads.

    Each batch uses `cpus` CPUs of a node.
    """
    cluster = needed("ray", "engine ray needs Ray: pip install 'iosched[ray]'")

    def go(batches: Iterable[Batch]) -> Iterator[tuple[Batch, Said]]:
        own = not cluster.is_initialized()
        here = jobs or os.cpu_count() or 1
        if own and not (address or os.environ.get("RAY_ADDRESS")) and cpus > here:
            raise UsageError(
                f"cpus {cpus}: must be at most {here}, the number of workers that Ray starts here", argument="cpus"
            )
        if own:
            cluster.init(
                address=address, num_cpus=None if address else jobs, log_to_driver=False, logging_level="error"
            )
        under_way: dict[Any, Batch] = {}
        try:
            yield from on_cluster(batches, under_way)
        finally:
            # Nobody waits for these batches any more. They must not use the cluster of the user.
            for ref in under_way:
                cluster.cancel(ref)
            if own:
                cluster.shutdown()

    def workers() -> int:
        alive = [node["Resources"] for node in cluster.nodes() if node["Alive"]]
        return sum(int(resources.get("CPU", 0)) // cpus for resources in alive)

    def on_cluster(batches: Iterable[Batch], under_way: dict[Any, Batch]) -> Iterator[tuple[Batch, Said]]:
        # Ray itself repeats a task if its worker or node is lost.
        task = cluster.remote(num_cpus=cpus, max_retries=-1)(work)
        lost = Lost()
        window = Window(workers, f"no node of the Ray cluster has {cpus} CPUs; add a node, or decrease cpus")

        def submit(batch: Batch) -> None:
            under_way[task.options(name=f"sweep {batch.workload}").remote(batch.units, root, cpus)] = batch

        def finished() -> Iterator[tuple[Batch, Said]]:
            window.most()
            ended, _ = cluster.wait(list(under_way), num_returns=1, timeout=1.0)
            for ref in ended:
                batch = under_way.pop(ref)
                try:
                    yield batch, cluster.get(ref)
                except (cluster.exceptions.RayTaskError, cluster.exceptions.TaskCancelledError):
                    raise
                except cluster.exceptions.RayError:
                    yield from lost.once_more(batch, submit)

        yield from kept_busy(batches, under_way, window.most, submit, finished)

    return go


def dask(root: str, jobs: int | None, address: Any, cpus: int) -> Engine:
    """Runs batches on Dask.

    `address` is the address of a scheduler or a `distributed.Client`. Without an address, processes
    of this machine run the batches.
    """
    distributed = needed("distributed", "engine dask needs Dask: pip install 'iosched[dask]'")

    def go(batches: Iterable[Batch]) -> Iterator[tuple[Batch, Said]]:
        if isinstance(address, distributed.Client):
            yield from on_cluster(address, batches)
            return
        here: dict[str, Any] = {}
        if not address:
            workers = jobs or os.cpu_count() or 1
            here = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
        with distributed.Client(address, set_as_default=False, **here) as client:
            yield from on_cluster(client, batches)

    def on_cluster(client: Any, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Said]]:
        lost = Lost()

        def workers() -> int:
            # Dask does not reserve the CPUs of a batch, so each worker can run it.
            threads = client.nthreads().values()
            return max(1, sum(threads) // cpus) if threads else 0

        window = Window(workers, "Dask has no worker; start a worker")
        ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        under_way: dict[str, tuple[Batch, Any]] = {}

        def submit(batch: Batch) -> None:
            # If a worker is lost, its batch is submitted again as a new task with a new key.
            key = f"sweep-{batch.ids[0]}-{lost.times(batch)}"
            future = client.submit(work, batch.units, root, cpus, key=key, pure=False, retries=LOST_MAX)
            under_way[future.key] = batch, future
            future.add_done_callback(ended.put)

        def finished() -> Iterator[tuple[Batch, Said]]:
            window.most()
            try:
                # The timeout lets the window count the workers.
                future = ended.get(timeout=1.0)
            except queue.Empty:
                return
            batch, _ = under_way.pop(future.key)
            try:
                yield batch, future.result()
            except (distributed.KilledWorker, distributed.CancelledError):
                yield from lost.once_more(batch, submit)

        try:
            yield from kept_busy(batches, under_way, window.most, submit, finished)
        finally:
            # Nobody waits for these batches any more. They must not use the cluster of the user.
            if under_way:
                client.cancel([future for _, future in under_way.values()])

    return go


def chosen(engine: str, root: str, jobs: int | None, address: Any, cpus: int) -> Engine:
    """Returns the engine with this name."""
    if engine == "threads":
        if address is not None:
            raise UsageError("address: only the engines ray and dask have an address", argument="address")
        return threads(root, jobs or os.cpu_count() or 1)
    if engine == "ray":
        return ray(root, jobs, address, cpus)
    if engine == "dask":
        return dask(root, jobs, address, cpus)
    raise UsageError(f"engine {engine}: must be threads, ray or dask", argument="engine")
