"""What a test asks about enqueued jobs. A failure says what was enqueued instead, and what to look at."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from workmill.client import Job, JobFunction
from workmill.codec import to_json

T = TypeVar("T")
SHOWN: Final = 10
LOOKED_AT: Final = 1_000
WHERE_TO_LOOK: Final = (
    "Does the code under test use this test's store? The fixture `mill` takes over the Workmill that `workmill_app` returns."
)


def assert_enqueued(function: JobFunction[..., Any, T], /, *args: Any, **kwargs: Any) -> Job[T]:
    """A job of this function with at least these arguments was enqueued, whatever became of it since; returns the latest."""
    wanted = _Wanted(function, args, kwargs)
    jobs = wanted.enqueued()
    found = next(filter(wanted.matches, jobs), None)
    if found is None:
        raise AssertionError(_explain(wanted, jobs))
    return found


def assert_not_enqueued(function: JobFunction[..., Any, Any], /, *args: Any, **kwargs: Any) -> None:
    """No job of this function with these arguments was enqueued."""
    wanted = _Wanted(function, args, kwargs)
    if found := [job for job in wanted.enqueued() if wanted.matches(job)]:
        raise AssertionError(f"{wanted} was enqueued:\n{_list(wanted, found)}")


class _Wanted:
    """A job that is looked for: of this function, with at least these arguments, by name and in their JSON form."""

    def __init__(self, function: JobFunction[..., Any, Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        names = function.arguments.names
        if unknown := kwargs.keys() - set(names):
            raise AssertionError(f"{function.type} has no parameter {min(unknown)}; it takes {', '.join(names)}")
        function.check_may_enqueue()
        self.function = function
        self.arguments = _json({**dict(zip(names, args, strict=False)), **kwargs})
        self._defaults = _json({name: value for name, value in function.arguments.defaults.items() if name in self.arguments})

    def __str__(self) -> str:
        return f"{self.function.type}({_named(self.arguments)})" if self.arguments else f"a {self.function.type}"

    def enqueued(self) -> list[Job[Any]]:
        """The jobs of the function, whatever their arguments, newest first."""
        return list(self.function.jobs.find(type=self.function.type, limit=LOOKED_AT))

    def matches(self, job: Job[Any]) -> bool:
        """Whether it is such a job."""
        return not self.differing(job)

    def differing(self, job: Job[Any]) -> list[str]:
        """The arguments that it has not, or has otherwise; one that was left out is the function's default."""
        arguments = _arguments(self.function, job)
        had = {} if arguments is None else {**self._defaults, **arguments}
        return [name for name, value in self.arguments.items() if name not in had or had[name] != value]


def _explain(wanted: _Wanted, jobs: Sequence[Job[Any]]) -> str:
    said, name = f"{wanted} was not enqueued.", wanted.function.type
    if jobs:
        return f"{said} These were:\n{_list(wanted, jobs)}"
    others = Counter(job.type for job in wanted.function.jobs.find(limit=LOOKED_AT))
    if others:
        return f"{said} No {name} was, only {', '.join(f'{count} × {other}' for other, count in others.items())}."
    return f"{said} Nothing was. {WHERE_TO_LOOK}"


def _list(wanted: _Wanted, jobs: Sequence[Job[Any]]) -> str:
    lines = [_line(wanted, job) for job in jobs[:SHOWN]]
    return "\n".join([*lines, f"  … and {len(jobs) - SHOWN} more"] if len(jobs) > SHOWN else lines)


def _line(wanted: _Wanted, job: Job[Any]) -> str:
    differing = wanted.differing(job)
    otherwise = f"; differs in {', '.join(differing)}" if differing else ""
    arguments = _arguments(wanted.function, job)
    had = f"{job.payload!r:.80}, which are no arguments" if arguments is None else _named(arguments)
    return f"  {job.type}({had}) is {job.state}{otherwise}"


def _arguments(function: JobFunction[..., Any, Any], job: Job[Any]) -> dict[str, Any] | None:
    """The arguments by name; None: whoever enqueued the job by its type gave it something else than an object."""
    if function.arguments.raw:
        return {function.arguments.names[0]: job.payload}
    return job.payload if isinstance(job.payload, dict) else None


def _json(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: json.loads(to_json(value, name)) for name, value in arguments.items()}


def _named(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r:.80}" for name, value in arguments.items())
