"""Forward-only migrations: numbered `.sql` files, each applied once, in order, and recorded with its name."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from workmill.domain.errors import StoreNotReady

if TYPE_CHECKING:
    from collections.abc import Iterable


class Migration(NamedTuple):
    """One step of the schema."""

    version: int
    name: str
    text: str


@cache
def migrations(package: str) -> tuple[Migration, ...]:
    """The migrations of a package's `migrations` folder, in order."""
    folder = files(package) / "migrations"
    found = [file for file in folder.iterdir() if file.name.endswith(".sql")]
    return tuple(
        Migration(int(file.name[:4]), file.name[:-4], file.read_text("utf-8")) for file in sorted(found, key=lambda file: file.name)
    )


def pending(known: Iterable[Migration], applied: Iterable[int]) -> list[Migration]:
    """Those of the known migrations that have not been applied.

    Raises:
        StoreNotReady: one was applied that this version does not know.

    """
    known, applied = tuple(known), set(applied)
    strange = applied - {migration.version for migration in known}
    if strange:
        raise StoreNotReady(
            f"the schema is newer than this version of Workmill (it has migration {max(strange)}, known are up to {known[-1].version}): "
            "upgrade Workmill"
        )
    return [migration for migration in known if migration.version not in applied]
