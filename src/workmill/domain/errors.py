"""The error tree. Every error carries its facts as attributes; its text is made from them."""

from __future__ import annotations


class WorkmillError(Exception):
    """The base of everything Workmill raises on purpose."""


class InvalidInput(WorkmillError, ValueError):
    """A value was refused before anything was written. Names the field and the rule it breaks."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule


def shown(value: object) -> str:
    """A refused value for the text of an error, short; the repr of a huge number, or of a stranger's class, can raise."""
    try:
        return f"{value!r:.120}"
    except Exception:  # noqa: BLE001 - a repr may raise anything
        return f"a {type(value).__name__} that cannot be shown"


class PayloadTooLarge(InvalidInput):
    """A payload is over the limit in bytes."""


class IllegalTransition(WorkmillError):
    """The transition table has no such entry: a programming error, or an action on a job in the wrong state."""

    def __init__(self, state: object, event: object) -> None:
        super().__init__(f"a {state or 'new'} job has no transition {event}")
        self.state = state
        self.event = event


class NotFound(WorkmillError, LookupError):
    """No job, worker, queue or handler of that name or id."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"no {kind} {name}")
        self.kind = kind
        self.name = name


class Conflict(WorkmillError):
    """The action does not fit the state the object is in; nothing was changed."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


class StoreError(WorkmillError):
    """The base of what a store can say of itself."""


class StoreUnavailable(StoreError):
    """The store could not be reached or did not answer in time; trying again may help, nothing is known to be lost."""


class StoreNotReady(StoreError):
    """The schema is missing, older or newer than this version needs; says what to run."""


class TransactionTooOld(StoreError):
    """A caller's SQLite transaction has read before another process wrote: begin it with BEGIN IMMEDIATE."""


class StoreFailure(StoreError):
    """The store refused a whole batch for a reason that is no row's fault (disk full, read-only, corrupt)."""


class WaitTimeout(WorkmillError, TimeoutError):
    """A job had not ended within the time given; it goes on."""

    def __init__(self, job_id: str, seconds: float) -> None:
        super().__init__(f"job {job_id} has not ended within {seconds:g} s")
        self.job_id = job_id
        self.seconds = seconds


class JobFailed(WorkmillError):
    """`.wait().result` of a job that did not succeed. Carries its final state, class and message."""

    def __init__(self, job_id: str, state: str, error_class: str | None, message: str | None) -> None:
        super().__init__(f"job {job_id} is {state}" + (f": {error_class}: {message}" if error_class else ""))
        self.job_id = job_id
        self.state = state
        self.error_class = error_class
        self.message = message


class ConfigurationError(WorkmillError, ValueError):
    """A setting, flag or environment variable that cannot be used; names it and the rule."""


class ArgumentsMismatch(WorkmillError, TypeError):
    """A job's payload does not fit its handler's parameters; the handler was not called.

    A failed attempt: another version of the code may know them. `final`: no attempt can help (the payload is not JSON).
    """

    def __init__(self, detail: str, *, final: bool = False) -> None:
        super().__init__(detail)
        self.final = final


class ProcessDied(WorkmillError):
    """The child process of an isolated run ended under it; says by which signal or exit code. A failed attempt."""


class MemoryLimitExceeded(WorkmillError):
    """An isolated run, with all it had started, used more memory than its `memory_limit`, and was killed. A failed attempt."""

    def __init__(self, used: int, limit: int) -> None:
        super().__init__(f"used {used / 1e6:.0f} MB of memory, its limit is {limit / 1e6:.6g} MB")
        self.used = used
        self.limit = limit


class JobSignal(Exception):
    """The base of what a handler may raise to say how its run ends."""


class RetryIn(JobSignal):
    """The attempt failed; the next is due in `seconds` (0 to a year) whatever the backoff says. It is charged as a failure."""

    def __init__(self, seconds: float, reason: str = "") -> None:
        super().__init__(reason or f"retry in {seconds:g} s")
        self.seconds = seconds


class Snooze(JobSignal):
    """Not now: given back and due in `seconds` (0 to a year), without charging an attempt. Bounded in number."""

    def __init__(self, seconds: float, reason: str = "snooze") -> None:
        super().__init__(reason)
        self.seconds = seconds


class Fail(JobSignal):
    """The job cannot succeed: dead at once with this reason, whatever attempts are left."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class JobCancelled(JobSignal):
    """Raised inside a handler by `job.check()` when its job was cancelled, timed out or lost; let it pass."""
