"""Code that must not type-check: an error that goes away makes its `ignore` unused, which is an error of its own."""

from workmill import Job, PreparedJob, RawPayload, Workmill

mill = Workmill()


@mill.job
def add(left: int, right: int) -> int:
    return left + right


@mill.job(queue="mail")
async def send_email(to: str, subject: str = "") -> str:
    return to + subject


@mill.job
def echo(payload: RawPayload) -> RawPayload:
    return payload


def arguments_must_be_those_of_the_function() -> None:
    add.enqueue(1)  # type: ignore[call-arg]
    add.enqueue(1, 2, 3)  # type: ignore[call-arg]
    add.enqueue(1, "2")  # type: ignore[arg-type]
    add.enqueue(left=1, wrong=2)  # type: ignore[call-arg]
    add.job("1", 2)  # type: ignore[arg-type]
    add("1", 2)  # type: ignore[arg-type]
    add.using(priority=1).enqueue("1", 2)  # type: ignore[arg-type]
    send_email.enqueue(to=5)  # type: ignore[arg-type]
    echo.enqueue('{"plain": "text"}')  # type: ignore[arg-type]


async def the_same_goes_for_the_event_loop() -> None:
    await send_email.enqueue_async()  # type: ignore[call-arg]
    await send_email.using(queue="x").enqueue_async(5)  # type: ignore[arg-type]
    await add.enqueue_async(None, 2)  # type: ignore[arg-type]


def options_are_not_arguments_and_have_types() -> None:
    add.enqueue(1, 2, delay=5)  # type: ignore[call-arg]
    add.using(left=1)  # type: ignore[call-arg]
    add.using(priority="high")  # type: ignore[arg-type]
    add.using(60)  # type: ignore[call-arg]
    mill.job(memory_limit=[])(add)  # type: ignore[call-overload]
    mill.job(delay=60)  # type: ignore[call-overload]
    mill.enqueue("x", {}, prority=1)  # type: ignore[call-arg]
    mill.jobs.find(sate="dead")  # type: ignore[call-arg]


def results_have_types() -> None:
    _one: Job[str] = add.enqueue(1, 2)  # type: ignore[assignment]
    _two: PreparedJob[str] = add.job(1, 2)  # type: ignore[assignment]
    _three: str = add.enqueue(1, 2).wait().result  # type: ignore[assignment]
    _four: int = send_email.enqueue("a").wait().result  # type: ignore[assignment]
    mill.enqueue_many([add])  # type: ignore[arg-type]
