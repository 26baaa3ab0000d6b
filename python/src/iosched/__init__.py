"""Choose, tune and run I/O schedulers, with evidence.

The package runs a workload on modelled disks under the I/O schedulers of Linux. A workload is a block trace, a fio job
file, a set of tasks, or the command line of an application. The schedulers take the same decisions as in Linux. The
package names the best scheduler for the workload, and shows how certain this answer is.

>>> import iosched
>>> c = iosched.compare(None, "sata-7200", ["mq-deadline", "bfq"], runs=5)
>>> c.verdicts.column_names[:3]
['device', 'scheduler', 'metric']

Tables support the Arrow PyCapsule protocol. pandas, polars, DuckDB and pyarrow read them without a copy.
"""

from . import sweep
from ._native import (
    Advice,
    Comparison,
    Device,
    Goal,
    Judgement,
    Request,
    Run,
    Search,
    Setting,
    Table,
    Trace,
    Validation,
    Workload,
    __version__,
    compare,
    devices,
    doctor,
    judge,
    plan,
    read_trace,
    schedulers,
    simulate,
    space,
    tune,
    validate,
)
from .errors import (
    ArgumentTypeError,
    ColumnError,
    DeviceError,
    FileError,
    IoschedError,
    IoschedWarning,
    MissingFileError,
    PolicyError,
    RunError,
    TraceError,
    UsageError,
    WorkloadError,
)
from .policy import Elevator
from .search import advise, objective

__all__ = [
    "Advice",
    "ArgumentTypeError",
    "ColumnError",
    "Comparison",
    "Device",
    "DeviceError",
    "Elevator",
    "FileError",
    "Goal",
    "IoschedError",
    "IoschedWarning",
    "Judgement",
    "MissingFileError",
    "PolicyError",
    "Request",
    "Run",
    "RunError",
    "Search",
    "Setting",
    "Table",
    "Trace",
    "TraceError",
    "UsageError",
    "Validation",
    "Workload",
    "WorkloadError",
    "__version__",
    "advise",
    "compare",
    "devices",
    "doctor",
    "judge",
    "objective",
    "plan",
    "read_trace",
    "schedulers",
    "simulate",
    "space",
    "sweep",
    "tune",
    "validate",
]
