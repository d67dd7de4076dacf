"""Make pictures, submit a job for each, run a worker, and watch.

python run.py --pictures 40 --processes 2 --folder out
"""

import argparse
import os
from pathlib import Path

from pictures import make_pictures
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from thumbnails import mill, thumbnail

from workmill import Job, State
from workmill.engine.worker import WorkerOptions

PATIENCE = 600.0


def main() -> None:
    """Do all of it in one terminal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=40, metavar="N")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, metavar="N", help="how many pictures at once")
    parser.add_argument("--folder", type=lambda path: Path(path).resolve(), default=Path("out").resolve())
    options = parser.parse_args()
    console = Console()
    with console.status("making pictures"):
        pictures = make_pictures(options.folder / "pictures", options.pictures)
    (options.folder / "thumbnails").mkdir(exist_ok=True)
    os.environ.setdefault("WORKMILL_STORE", f"sqlite:///{options.folder / 'jobs.db'}")
    with mill, mill.run_worker(WorkerOptions(concurrency=options.processes)):
        jobs = mill.enqueue_many([thumbnail.job(str(path), str(options.folder / "thumbnails")) for path in pictures])
        watch(console, dict(zip(pictures, jobs, strict=True)))
        report(console, dict(zip(pictures, jobs, strict=True)))


def watch(console: Console, jobs: dict[Path, Job[list[str]]]) -> None:
    """Show how many pictures are done, and which is being worked on, until all are."""
    columns = (TextColumn("thumbnails"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=len(jobs))
        for path, job in jobs.items():
            progress.update(task, description=path.name)
            job.wait(timeout=PATIENCE)
            progress.advance(task)
        progress.update(task, description="")


def report(console: Console, jobs: dict[Path, Job[list[str]]]) -> None:
    """Say what was made, and what could not be and why."""
    made = [path for job in jobs.values() if job.state is State.SUCCEEDED for path in job.result]
    console.print(f"{len(made)} thumbnails of {len({Path(path).stem.rsplit('-', 1)[0] for path in made})} pictures")
    for path, job in jobs.items():
        if job.error is not None:
            console.print(f"{path.name}: {job.state} after {job.attempt} attempts: {job.error.type}: {job.error.message}", soft_wrap=True)


if __name__ == "__main__":
    main()
