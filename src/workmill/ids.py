"""Identifiers: UUIDv7, rising within a process, so that indexes stay narrow at their hot end (random ids cost a factor of four)."""

from uuid_utils import uuid7


def new_id() -> str:
    """A new id in canonical text."""
    return str(uuid7())
