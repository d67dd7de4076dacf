"""The PostgreSQL store is held to the same rules when its jobs are handed out by Redis."""

from workmill.testing.conformance import (
    beating,
    claiming,
    ending,
    exchanging,
    operating,
    reading,
    rescuing,
    retaining,
    selecting,
    submitting,
    upkeeping,
)


class TestCancellingRuns(ending.Cancelling): ...


class TestSubmitting(submitting.Submitting): ...


class TestRepeatedIds(submitting.RepeatedIds): ...


class TestUniqueKeys(submitting.UniqueKeys): ...


class TestWaking(submitting.Waking): ...


class TestSucceeding(ending.Succeeding): ...


class TestFailing(ending.Failing): ...


class TestReleasing(ending.Releasing): ...


class TestJudging(exchanging.Judging): ...


class TestSpoiled(exchanging.Spoiled): ...


class TestOrdering(claiming.Ordering):
    STEP = 1_000


class TestClaiming(claiming.Claiming): ...


class TestRestricting(claiming.Restricting): ...


class TestJoining(beating.Joining): ...


class TestBeating(beating.Beating): ...


class TestTakingBack(beating.TakingBack): ...


class TestLeaving(beating.Leaving): ...


class TestTurning(upkeeping.Turning): ...


class TestPromoting(upkeeping.Promoting): ...


class TestExpiring(upkeeping.Expiring): ...


class TestBurying(upkeeping.Burying): ...


class TestRescuing(rescuing.Rescuing): ...


class TestPruning(retaining.Pruning): ...


class TestFolding(retaining.Folding): ...


class TestCancelling(operating.Cancelling): ...


class TestReviving(operating.Reviving): ...


class TestDiscarding(operating.Discarding): ...


class TestRescheduling(operating.Rescheduling): ...


class TestShowing(reading.Showing): ...


class TestListing(reading.Listing): ...


class TestCounting(reading.Counting): ...


class TestSelecting(selecting.Selecting): ...


class TestSetting(selecting.Setting): ...
