"""`@mill.job`: which functions can be jobs, under which names, and that they stay functions."""

import asyncio
import functools
import inspect
import subprocess
import sys
import types
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from workmill import ConfigurationError, InvalidInput, RawPayload, Workmill
from workmill.domain.errors import ArgumentsMismatch

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForTypeCheckers


@pytest.fixture
def mill() -> Workmill:
    return Workmill("sqlite://")


def test_a_declared_function_is_still_the_function(mill: Workmill) -> None:
    @mill.job(queue="math")
    def add(left: int, right: int = 2) -> int:
        """Add."""
        return left + right

    assert add(1) == 3
    assert (add.__name__, add.__doc__) == ("add", "Add.")
    assert str(inspect.signature(add)) == "(left: int, right: int = 2) -> int"


def test_a_declared_coroutine_function_is_still_one_to_await(mill: Workmill) -> None:
    @mill.job
    async def add(left: int, right: int = 2) -> int:
        return left + right

    assert asyncio.run(add(1, right=5)) == 6


def test_parameters_may_be_called_as_anything(mill: Workmill) -> None:
    @mill.job
    def odd(*, args: int, kwargs: int, connection: int, function: int, delay: int) -> None: ...

    prepared = odd.job(args=2, kwargs=3, connection=4, function=5, delay=6)

    assert prepared.new.payload == '{"args":2,"kwargs":3,"connection":4,"function":5,"delay":6}'


def test_a_job_is_named_by_module_and_function(mill: Workmill) -> None:
    def send() -> None: ...

    send.__module__, send.__qualname__ = "app.mail", "Mailer.send"

    assert mill.job(send).type == "app.mail.Mailer.send"


def test_a_name_is_made_to_fit_the_rule(mill: Workmill) -> None:
    def send() -> None: ...

    send.__module__, send.__qualname__ = "app", "outer.<locals>.größe"
    first = mill.job(send).type
    send.__module__, send.__qualname__ = "a" * 90, "b" * 90
    second = mill.job(send).type

    assert first == "app.outer.gr-e"
    assert second == "a" * 9 + "." + "b" * 90


def test_a_job_in_a_script_has_the_name_that_a_worker_gives_it(tmp_path: Path) -> None:
    source = "from workmill import Workmill\nmill = Workmill()\n@mill.job\ndef send(): ...\nprint(send.type)\n"
    (tmp_path / "shop.py").write_text(source)

    as_script, as_module, imported = (
        subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=tmp_path, check=True).stdout
        for arguments in (["shop.py"], ["-m", "shop"], ["-c", "import shop"])
    )

    assert as_script == as_module == imported == "shop.send\n"


@pytest.mark.parametrize("function", [lambda: None, functools.partial(print), 5, None.__class__])
def test_what_has_no_name_needs_one_or_is_no_function(mill: Workmill, function: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"name=|must be a function"):
        mill.job()(function)


def test_a_lambda_with_a_name_is_a_job(mill: Workmill) -> None:
    square: Callable[[int], int] = lambda value: value * value  # noqa: E731 - a lambda on purpose

    assert mill.job(name="square")(square).enqueue(3).payload == {"value": 3}


def test_a_name_is_given_once(mill: Workmill) -> None:
    @mill.job(name="send")
    def one() -> None: ...

    def two() -> None: ...

    with pytest.raises(ConfigurationError, match=r"job send: declared twice, in .*test_declaring.py:\d+ and in .*test_declaring.py:\d+"):
        mill.job(name="send")(two)

    assert mill.registry.types == ("send",)


def test_a_module_that_is_reloaded_declares_its_jobs_again(mill: Workmill) -> None:
    code = compile("def send(): ...", "reloaded.py", "exec")
    for _ in range(2):
        module = types.ModuleType("app")
        exec(code, module.__dict__)  # noqa: S102 - what a reload does
        mill.job(name="send")(module.send)

    assert mill.registry.types == ("send",)


def test_names_of_workmill_are_reserved(mill: Workmill) -> None:
    with pytest.raises(InvalidInput, match=r"^type: names beginning with 'workmill\.' are reserved"):
        mill.job(name="workmill.webhook")(lambda: None)

    assert mill.registry.types == ()


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


class Callable_:  # noqa: N801 - it stands for any class
    def method(self) -> None: ...


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (generator, "a generator does nothing when it is called"),
        (async_generator, "a generator does nothing when it is called"),
        (Callable_, "must be a function"),
        (staticmethod(generator), "must be a function"),
        (Callable_.method, "a job is a function, not a method"),
        (print, "a payload has names"),
    ],
)
def test_what_cannot_run_as_a_job_is_refused_when_it_is_declared(mill: Workmill, function: Any, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"job x: .*({reason})"):
        mill.job(name="x")(function)

    assert mill.registry.types == ()


def test_a_memory_limit_needs_a_process_of_its_own(mill: Workmill) -> None:
    with pytest.raises(ConfigurationError, match=r"memory_limit needs isolate=True"):
        mill.job(name="x", memory_limit="512MB")(lambda: None)


def test_the_engine_is_told_where_a_function_runs_and_how_much_it_may_use(mill: Workmill) -> None:
    async def coroutine() -> None: ...
    def plain() -> None: ...

    mill.job(name="plain")(plain)
    mill.job(name="coroutine")(coroutine)
    mill.job(name="isolated", isolate=True, memory_limit="512MB")(plain)
    handlers = {handler.name: (handler.kind, handler.memory_limit) for handler in mill.registry}

    assert handlers == {"plain": ("thread", None), "coroutine": ("loop", None), "isolated": ("isolated", 512_000_000)}


def test_an_annotation_may_name_what_comes_later_in_the_module(mill: Workmill) -> None:
    scope: dict[str, Any] = {"mill": mill}
    exec("@mill.job(name='send')\ndef send(to: 'Person'): ...\nPerson = dict[str, str]", scope)  # noqa: S102 - a module in small

    mill.prepare()

    assert scope["send"].job({"name": "Ann"}).new.payload == '{"to":{"name":"Ann"}}'


def test_an_annotation_that_is_never_defined_is_said_before_anything_runs(mill: Workmill) -> None:
    @mill.job(name="send")
    def send(to: "OnlyForTypeCheckers") -> None: ...

    with pytest.raises(ConfigurationError, match=r"job send: an annotation names what is not there .*OnlyForTypeCheckers"):
        mill.prepare()
    with pytest.raises(ConfigurationError, match=r"OnlyForTypeCheckers"):
        send.enqueue(5)  # type: ignore[arg-type]


def test_a_run_decodes_calls_and_encodes(mill: Workmill) -> None:
    @mill.job(name="add")
    def add(left: int, right: int = 2) -> dict[str, int]:
        return {"sum": left + right}

    handler = mill.registry.get("add")

    assert handler is not None
    assert handler.call('{"left":1}') == '{"sum":3}'


def test_a_payload_that_does_not_fit_fails_the_attempt_and_one_that_is_no_json_fails_the_job(mill: Workmill) -> None:
    @mill.job(name="add")
    def add(left: int) -> None: ...

    handler = mill.registry.get("add")

    assert handler is not None
    with pytest.raises(ArgumentsMismatch, match=r"left: must be int \(got str\)") as misfit:
        handler.call('{"left":"1"}')
    with pytest.raises(ArgumentsMismatch, match=r"payload: ") as corrupted:
        handler.call('{"left":')
    assert (misfit.value.final, corrupted.value.final) == (False, True)


def test_an_error_of_the_function_is_never_taken_for_a_misfit(mill: Workmill) -> None:
    @mill.job(name="add")
    def add(payload: RawPayload) -> None:
        raise InvalidInput("left", "is the function's own affair")

    handler = mill.registry.get("add")

    assert handler is not None
    with pytest.raises(InvalidInput, match=r"the function's own affair"):
        handler.call("{}")


def test_hooks_are_plain_functions(mill: Workmill) -> None:
    async def coroutine() -> None: ...

    with pytest.raises(ConfigurationError, match=r"on_startup: must be a plain function"):
        mill.on_startup(coroutine)
    with pytest.raises(ConfigurationError, match=r"middleware: must be a plain function"):
        mill.middleware(5)  # type: ignore[type-var]


def test_a_url_that_names_no_store_is_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match=r"mysql"):
        Workmill("mysql://localhost")


def test_constructing_and_declaring_opens_nothing(tmp_path: Path) -> None:
    mill = Workmill(f"sqlite:///{tmp_path}/jobs.db")
    mill.job(name="square")(lambda value: value)
    mill.close()

    assert list(tmp_path.iterdir()) == []


def test_without_a_url_the_environment_decides_at_the_first_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mill = Workmill()
    monkeypatch.setenv("WORKMILL_STORE", f"sqlite:///{tmp_path}/jobs.db")

    mill.enqueue("anything")
    mill.close()

    assert (tmp_path / "jobs.db").exists()


def test_modules_that_declare_jobs_are_imported_when_a_worker_prepares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "declares_jobs_for_a_test.py").write_text("declared = True")
    monkeypatch.syspath_prepend(tmp_path)
    mill = Workmill(imports=["declares_jobs_for_a_test"])

    mill.prepare()

    assert sys.modules.pop("declares_jobs_for_a_test").declared
    with pytest.raises(ConfigurationError, match=r"imports: nowhere_at_all: No module named"):
        Workmill(imports=["nowhere_at_all"]).prepare()
