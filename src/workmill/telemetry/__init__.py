"""What happens, told as values. The logic emits events; logs, metrics and traces subscribe to them."""

from workmill.telemetry.events import DEBUG, ERROR, INFO, WARNING, Event, Subscriber, Telemetry
from workmill.telemetry.logs import JsonFormatter, KeyValueFormatter, LogSubscriber, log_form, log_to

__all__ = [
    "DEBUG",
    "ERROR",
    "INFO",
    "WARNING",
    "Event",
    "JsonFormatter",
    "KeyValueFormatter",
    "LogSubscriber",
    "Subscriber",
    "Telemetry",
    "log_form",
    "log_to",
]
