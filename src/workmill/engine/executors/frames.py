"""What a worker and its child processes say to each other: JSON in frames of a length and so many bytes. Nothing is ever pickled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from workmill.domain.job import Claimed, Progress
from workmill.domain.outcome import ErrorReport, Failed, Outcome, Released, Succeeded
from workmill.engine.context import Stop

HEAD: Final = 4
LARGEST: Final = 64 << 20
"""No frame is longer: payloads and results end at 1 MiB, and JSON may write a character with six."""


class Load(msgspec.Struct, tag=True):
    """To the child, first: where to find modules, and how to log."""

    path: list[str]
    logs: tuple[int, Literal["text", "json"]] | None


class Begin(msgspec.Struct, tag=True):
    """To the child: run this. The times are of the monotonic clock, which all processes of a machine share."""

    claimed: Claimed
    claimed_at: float
    started: float
    ends_at: float | None


class Halt(msgspec.Struct, tag=True):
    """To the child: the run should end."""

    reason: Stop


class Quit(msgspec.Struct, tag=True):
    """To the child: leave."""


class Ready(msgspec.Struct, tag=True):
    """To the worker: the target is imported."""


class Refused(msgspec.Struct, tag=True):
    """To the worker: it cannot be imported."""

    error: ErrorReport


class Said(msgspec.Struct, tag=True):
    """To the worker: how far the handler says it has come."""

    progress: Progress


class Ended(msgspec.Struct, tag=True):
    """To the worker: the run's outcome, in the field of its kind."""

    succeeded: Succeeded | None = None
    failed: Failed | None = None
    released: Released | None = None

    @property
    def outcome(self) -> Outcome | None:
        """The one that is there."""
        return self.succeeded or self.failed or self.released


ToChild = Load | Begin | Halt | Quit
ToWorker = Ready | Refused | Said | Ended

to_child: Final = msgspec.json.Decoder(ToChild)
to_worker: Final = msgspec.json.Decoder(ToWorker)


class Garbled(ValueError):
    """What came is no frame: something else has written there."""


def ended(outcome: Outcome) -> Ended:
    """The message for an outcome."""
    match outcome:
        case Succeeded():
            return Ended(succeeded=outcome)
        case Failed():
            return Ended(failed=outcome)
        case Released():
            return Ended(released=outcome)


def pack(message: ToChild | ToWorker) -> bytes:
    """A message as a frame."""
    body = msgspec.json.encode(message)
    return len(body).to_bytes(HEAD, "big") + body


class Unpacker:
    """Bytes as they come, frames as they are complete."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take more bytes in and give what has become complete.

        Raises:
            Garbled: a length that no frame has.

        """
        self._buffer += data
        while len(self._buffer) >= HEAD:
            end = HEAD + int.from_bytes(self._buffer[:HEAD], "big")
            if end > LARGEST:
                raise Garbled(f"a frame of {end} bytes")
            if len(self._buffer) < end:
                return
            frame = bytes(self._buffer[HEAD:end])
            del self._buffer[:end]
            yield frame
