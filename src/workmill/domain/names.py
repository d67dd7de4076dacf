"""The rule for names of queues, types, nodes, tags and workers."""

import re
from typing import Final

from workmill.domain.errors import InvalidInput, shown

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")
RULE: Final = "1 to 100 characters: letters, digits and . _ : - , the first a letter or digit"
RESERVED: Final = "workmill."


def check_name(field: str, value: object) -> str:
    """Return `value` when it is a valid name.

    Raises:
        InvalidInput: naming `field` and the rule.

    """
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise InvalidInput(field, f"must be {RULE} (got {shown(value)})")
    return value


def check_free_name(field: str, value: object) -> str:
    """Return `value` when it is a valid name that does not begin with `workmill.`, which is ours."""
    name = check_name(field, value)
    if name.startswith(RESERVED):
        raise InvalidInput(field, f"names beginning with {RESERVED!r} are reserved (got {name!r})")
    return name
