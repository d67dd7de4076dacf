"""Background jobs for Python: durable, typed, observable, on SQLite with nothing to install.

The public names. Each is loaded when it is first asked for, so that a command or a supervisor pays for what it uses only.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from workmill.client import Job, JobFunction, Options, PreparedJob, Workmill
    from workmill.codec import RawPayload
    from workmill.domain.errors import (
        ConfigurationError,
        Conflict,
        Fail,
        InvalidInput,
        JobCancelled,
        JobFailed,
        NotFound,
        PayloadTooLarge,
        RetryIn,
        Snooze,
        StoreError,
        StoreFailure,
        StoreNotReady,
        StoreUnavailable,
        TransactionTooOld,
        WaitTimeout,
        WorkmillError,
    )
    from workmill.domain.retry import Retry, exponential
    from workmill.domain.states import State
    from workmill.engine.context import RunningJob, current_job
    from workmill.engine.worker import Worker, WorkerOptions
    from workmill.results import UnstorableResult

__all__ = [
    "ConfigurationError",
    "Conflict",
    "Fail",
    "InvalidInput",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobFunction",
    "NotFound",
    "Options",
    "PayloadTooLarge",
    "PreparedJob",
    "RawPayload",
    "Retry",
    "RetryIn",
    "RunningJob",
    "Snooze",
    "State",
    "StoreError",
    "StoreFailure",
    "StoreNotReady",
    "StoreUnavailable",
    "TransactionTooOld",
    "UnstorableResult",
    "WaitTimeout",
    "Worker",
    "WorkerOptions",
    "Workmill",
    "WorkmillError",
    "current_job",
    "exponential",
]

_HOMES: Final = {
    "workmill.client": {"Job", "JobFunction", "Options", "PreparedJob", "Workmill"},
    "workmill.codec": {"RawPayload"},
    "workmill.domain.retry": {"Retry", "exponential"},
    "workmill.domain.states": {"State"},
    "workmill.engine.context": {"RunningJob", "current_job"},
    "workmill.engine.worker": {"Worker", "WorkerOptions"},
    "workmill.results": {"UnstorableResult"},
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = next((module for module, names in _HOMES.items() if name in names), "workmill.domain.errors")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
