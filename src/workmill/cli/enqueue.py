"""`workmill enqueue`: submit a job from a shell, a script or cron."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from workmill.cli.exits import DONE, FAILED, WORK_LEFT
from workmill.cli.parameters import DELAYS, DURATION, MOMENT, PAYLOAD
from workmill.cli.progress import spinner
from workmill.cli.session import Session, takes_store
from workmill.cli.shapes import receipt_shape, say_json, whole_job_shape
from workmill.cli.wording import say_stored, visible
from workmill.client.waiting import Waiter
from workmill.domain.states import State
from workmill.domain.submission import new_job
from workmill.ids import new_id

if TYPE_CHECKING:
    from workmill.domain.job import Job, Receipt
    from workmill.store.base import Store


@click.command(short_help="Submit a job.")
@takes_store(made=True)
@click.argument("type", metavar="TYPE")
@click.option("--payload", type=PAYLOAD, default="{}", help="The JSON the handler gets: text, a file, or the standard input.")
@click.option("--queue", metavar="NAME", default="default", help="The queue.")
@click.option("--delay", type=DURATION, help="Due after this duration.")
@click.option("--at", "run_at", type=MOMENT, help="Due at this time.")
@click.option("--priority", type=int, metavar="N", default=0, help="From -100 to 100; higher runs first.")
@click.option("--key", "unique_key", metavar="KEY", help="Unique among the live jobs of its type: if taken, that job is the answer.")
@click.option("--timeout", type=DURATION, help="For one run.")
@click.option("--expires-in", type=DURATION, help="Expired when it has not started within this duration.")
@click.option("--max-attempts", type=int, metavar="N", help="How often it is tried.  [default: 5]")
@click.option("--max-losses", type=int, metavar="N", help="How many workers it may lose.  [default: 3]")
@click.option("--backoff", type=DELAYS, help="Delays after the first, second, … failure; the last repeats.  [default: exponential]")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="A tag; may be repeated.")
@click.option("--meta", metavar="JSON", help="An object of your own, kept with the job.")
@click.option("--traceparent", metavar="W3C", envvar="TRACEPARENT", help="The trace it belongs to.")
@click.option("--wait", is_flag=True, help="Wait for its ending and print its result; exit 1 when it does not succeed.")
@click.option("--wait-timeout", type=DURATION, help="Wait so long at most; exit 4 when it has not ended.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: the receipt, or with --wait the whole job.")
def enqueue(session: Session, *, type: str, payload: str, wait: bool, wait_timeout: float | None, as_json: bool, **options: Any) -> int:
    """Submit a job of TYPE and print its id. It is durable when the id is printed."""
    if options["delay"] is not None and options["run_at"] is not None:
        raise click.UsageError("--delay and --at cannot be used together", click.get_current_context())
    options["tags"] = list(options["tags"])
    receipt = session.store.submit([new_job(new_id(), type, payload, options)])[0]
    if not receipt.created:
        click.echo(f"the key {visible(options['unique_key'])} is held by this job, which is {receipt.state}", err=True)
    if wait or wait_timeout is not None:
        return _await_ending(session.store, receipt, wait_timeout, as_json=as_json)
    if as_json:
        say_json(receipt_shape(receipt))
    else:
        click.echo(receipt.id)
    return DONE


def _await_ending(store: Store, receipt: Receipt, timeout: float | None, *, as_json: bool) -> int:
    with spinner(f"waiting for {receipt.id}"):
        ended = _wait(store, receipt.id, timeout)
    job = store.job(receipt.id)
    if not ended:
        click.echo(f"{job.id} has not ended, it is {job.state} and goes on", err=True)
        return WORK_LEFT
    if as_json:
        say_json(whole_job_shape(job, store.history(job.id)))
    return _say_ending(job, silent=as_json)


def _wait(store: Store, job_id: str, timeout: float | None) -> bool:
    """Whether the job has ended within the time; Ctrl-C ends the wait, not the job."""
    waiter = Waiter(store)
    ending = waiter.ending(job_id)
    assert ending is not None  # noqa: S101 - a waiter that has just been made has not retired
    waiter.start()
    try:
        ending.result(timeout)
    except (TimeoutError, KeyboardInterrupt):
        return False
    finally:
        waiter.stop()
        waiter.join()
    return True


def _say_ending(job: Job, *, silent: bool) -> int:
    if job.state is State.SUCCEEDED:
        if not silent:
            say_stored(job.result or "null")
        return DONE
    reason = f": {job.error.type}: {job.error.message}" if job.error else ""
    click.echo(f"{job.id} is {job.state}{visible(reason)}", err=True)
    return FAILED
