"""The contract of a store, as tests. A store is done when it passes all of them.

Each class here is a group of rules, written against the Protocols of `workmill.store.base` only. To hold a store to them, make a
test module that defines the fixtures `clock` and `store`, and one subclass of each group::

    @pytest.fixture
    def clock() -> MovableClock:
        return MovableClock()

    @pytest.fixture
    def store(clock: MovableClock) -> Iterator[Store]:      # a new, empty, migrated store whose clock is `clock`
        ...

    class TestSubmitting(conformance.Submitting): ...

A rule that moves time moves `clock`; none sleeps. `workmill.testing.factories` builds what they submit and exchange.
"""
