"""From a URL to a dispatcher. The only file that names one, and it imports it only when it is asked for."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from workmill.config import DISPATCH, from_environment, shown_url
from workmill.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from workmill.dispatch.heads import DispatchedHeads

DIRECT: Final = "direct"
REDIS: Final = ("redis://", "rediss://", "unix://")


def open_heads(url: str | None = None) -> DispatchedHeads | None:
    """The heads of queues in the dispatcher that a URL names, else WORKMILL_DISPATCH; None: workers claim from the store.

    Nothing is opened before its first use.

    Raises:
        ConfigurationError: the URL names none.

    """
    url = url or from_environment().dispatch
    if url == DIRECT:
        return None
    if not url.startswith(REDIS):
        raise ConfigurationError(f"{DISPATCH}: must be direct or redis://… (got {shown_url(url)!r:.120})")
    if not url.startswith("unix") and not re.fullmatch(r"rediss?://[^/?#]*/?\d*([?#].*)?", url):
        raise ConfigurationError(f"{DISPATCH}: what stands after the host is the number of a database, as in redis://host/0")
    if find_spec("redis") is None:
        raise ConfigurationError(f"{DISPATCH}: Redis needs the extra: pip install 'workmill[redis]'")
    from workmill.dispatch.heads import DispatchedHeads  # noqa: PLC0415 - it is loaded when it is named
    from workmill.dispatch.redis import RedisDispatch  # noqa: PLC0415 - the same

    return DispatchedHeads(RedisDispatch(url))
