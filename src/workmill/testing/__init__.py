"""For the tests of applications that use Workmill, and for stores that want to be held to its contract."""

from workmill.testing.assertions import assert_enqueued, assert_not_enqueued
from workmill.testing.clock import MovableClock
from workmill.testing.memory import MemoryMill, Ran, memory_mill

__all__ = ["MemoryMill", "MovableClock", "Ran", "assert_enqueued", "assert_not_enqueued", "memory_mill"]
