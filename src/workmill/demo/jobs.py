"""What the demonstration's workers can do: `workmill worker workmill.demo.jobs:mill`."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from workmill import Retry, Workmill, clock, current_job

mill = Workmill()


class GatewayTimeout(Exception):
    """The other side did not answer."""


class PartnerAway(Exception):
    """Nor did this one."""


@mill.job(name="make_thumbnail")
def make_thumbnail(picture: int) -> str:
    """Plain work."""
    clock.sleep(0.02 + picture % 5 * 0.02)
    return f"thumbnail-{picture}.png"


@mill.job(name="send_reminder")
async def send_reminder(to: str) -> str:
    """Work for later."""
    return f"reminded {to}"


@mill.job(name="charge_card", retry=Retry(max_attempts=5, backoff=[1, 2]))
def charge_card(amount: int, works_at: int = 3) -> str:
    """Fails until its third attempt."""
    clock.sleep(0.1)
    if current_job().attempt < works_at:
        raise GatewayTimeout("the payment gateway did not answer")
    return f"charged {amount}"


@mill.job(name="sync_contacts", retry=Retry(max_attempts=2, backoff=[0.5]))
def sync_contacts(partner: str) -> str:
    """Fails while the partner, a file that somebody has to make, is away."""
    clock.sleep(0.1)
    if not Path(partner).exists():
        raise PartnerAway("nobody answers at the partner's")
    return "synchronised"


@mill.job(name="export_archive")
def export_archive(pages: int) -> None:
    """Takes long, says how far it is, and stops when it is asked to."""
    job = current_job()
    for page in range(pages):
        job.progress(page / pages, f"page {page} of {pages}")
        clock.sleep(0.1)
        job.check()


@mill.job(name="transcode_video", isolate=True, retry=Retry(max_attempts=3, backoff=[1]))
def transcode_video(name: str) -> str:
    """Takes the process it runs in down at the first attempt, as bad native code does."""
    clock.sleep(0.3)
    if current_job().attempt == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    return f"{name}.webm"


@mill.job(name="yearly_report")
def yearly_report(year: int, seconds: float) -> str:
    """Takes long enough for its worker to be killed meanwhile."""
    clock.sleep(seconds)
    return f"report-{year}.pdf"


@mill.job(name="newsletter")
def newsletter(reader: int) -> str:
    """Many, and none urgent."""
    clock.sleep(0.15)
    return f"sent to reader {reader}"


@mill.job(name="reset_password")
def reset_password(user: str) -> str:
    """Urgent."""
    return f"sent to {user}"
