"""Sweeps: many comparisons, on this machine's cores or on a cluster of Ray or Dask, and what a fleet gains.

A plan crosses workloads, devices, schedulers and seeds; it is cut into units, each a comparison that is named by all
that goes into it, and each unit's rows go into a dataset of Parquet files as soon as they are there. Whoever makes
them, in whatever order and after whatever failures, the dataset is the same. A sweep that was stopped makes what is
missing.

>>> import tempfile
>>> import iosched
>>> plan = {"workloads": [{"command": "dd if=/dev/zero of=/f bs=64K count=4"}], "devices": ["sata-ssd", "nvme"],
...         "schedulers": ["none", "bfq"], "runs": 2}
>>> with tempfile.TemporaryDirectory() as results:
...     outcome = iosched.sweep.run(plan, results)
...     outcome.made, len(iosched.sweep.summary(results, "finish").volumes)
(2, 2)
"""

from .._native import FleetSummary, SweepPlan, SweepUnit
from .driver import Failed, Outcome, Progress, estimate, run, summary, units

__all__ = [
    "Failed",
    "FleetSummary",
    "Outcome",
    "Progress",
    "SweepPlan",
    "SweepUnit",
    "estimate",
    "run",
    "summary",
    "units",
]
