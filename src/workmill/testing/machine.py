"""The random test of a store against the model: any order of submissions, claims, outcomes, silences, operators and upkeep.

Subclass `StoreMachine` with `open_store`, run it with Hypothesis, and see that nothing `never_happened`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from workmill.clock import from_datetime
from workmill.domain.job import Bulk, Selection
from workmill.domain.limits import SECOND
from workmill.domain.outcome import Accepted, ErrorReport, Failed, FailureKind, Fence, Outcome, Released, ReleaseReason, Succeeded
from workmill.domain.states import State
from workmill.domain.submission import new_job
from workmill.domain.worker import Held, Hello, Wants
from workmill.testing.clock import MovableClock
from workmill.testing.model import DAY, FAILED_ENDS, Model

if TYPE_CHECKING:
    from workmill.domain.job import Job, NewJob
    from workmill.store.base import Store
    from workmill.testing.model import ModelJob

LEASE = 15
QUEUES, TYPES, KEYS = ("mail", "video"), ("a", "a", "b"), (None, None, "k")
EVERYTHING = Selection()
WANTS = (Wants(queues={"mail": 1}), Wants(queues={"video": 2, "mail": 5}), Wants(anywhere=1), Wants(anywhere=5))
EFFECTS = frozenset(
    {
        "created", "key_was_taken", "repeated_submission", "gave_back", "claimed", "claimed_several", "claimed_suspect", "unanswered",
        "told_to_cancel", "told_of_loss", "succeeded", "failed", "released", "reported_many", "refused", "repeated_report", "lost",
        "lost_with_a_suspect", "folded", "promoted", "expired", "buried", "pruned", "cancel", "revive", "discard", "reschedule",
        "revival_met_a_taken_key",
    }
)  # fmt: skip
"""What every run as a whole must have seen, or it has proved nothing about it."""
Ending = tuple[str, dict[str, Any]]
options = st.fixed_dictionaries(
    {
        "queue": st.sampled_from(QUEUES),
        "priority": st.sampled_from((0, 0, 1, -1)),
        "delay": st.sampled_from((None, None, 0, 3, 40)),
        "expires_in": st.sampled_from((None, None, None, None, None, 0, 10)),
        "max_attempts": st.sampled_from((1, 2, 3)),
        "max_losses": st.sampled_from((1, 2, 3)),
        "backoff": st.sampled_from(([0], [2], [0, 30])),
        "unique_key": st.sampled_from(KEYS),
    }
)
submissions = st.lists(st.tuples(st.sampled_from(TYPES), options), min_size=2, max_size=8)
endings = st.sampled_from(
    [("succeeded", {})] * 2
    + [("failed", given) for given in ({}, {"kind": FailureKind.TIMEOUT}, {"final": True}, {"retry_in": 0.0}, {"retry_in": 7.5})]
    + [("released", {"reason": reason}) for reason in (ReleaseReason.SHUTDOWN, ReleaseReason.CANCELLED, ReleaseReason.UNKNOWN_TYPE)]
    + [("released", {"reason": ReleaseReason.SNOOZE, "delay": delay}) for delay in (0.0, 4.0)]
)


def fence_of(job: ModelJob) -> Fence:
    """The token of a job's newest run."""
    return Fence(job.new.id, job.lease)


def outcome_of(fence: Fence, ending: Ending) -> Outcome:
    """An ending as the outcome of a run."""
    how, details = ending
    if how == "succeeded":
        return Succeeded(fence, "null", 0, 0)
    if how == "failed":
        return Failed(**{"fence": fence, "kind": FailureKind.ERROR, "error": ErrorReport("E", "m"), "waited": 0, "ran": 0, **details})
    return Released(fence, **details)


class StoreMachine(RuleBasedStateMachine):
    """Does everything to a store and to the model, and compares them after each step."""

    happened: ClassVar[Counter[str]]
    """How often each of `EFFECTS` was seen, over all runs."""

    @staticmethod
    def open_store(clock: MovableClock) -> Store:
        """A new store whose clock is `clock`."""
        raise NotImplementedError

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.happened = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.clock = MovableClock()
        self.store = self.open_store(self.clock)
        self.model = Model(self.clock)
        self.made = 0
        self.seq = 0
        self.reported: list[tuple[str, Outcome]] = []
        self.gone: list[str] = []

    def teardown(self) -> None:
        self.store.close()

    @classmethod
    def never_happened(cls) -> set[str]:
        """What has not been seen in any run."""
        return {effect for effect in EFFECTS if not cls.happened[effect]}

    def saw(self, **effects: object) -> None:
        """Count what was seen."""
        assert effects.keys() <= EFFECTS
        self.happened.update(name for name, seen in effects.items() if seen)

    # What can be acted on

    def workers(self) -> list[str]:
        return sorted(self.model.workers)

    def holders(self) -> list[str]:
        """The workers that hold something; somebody does, if anything can be claimed."""
        for worker in self.workers():
            if not self.running():
                self.claim(worker, Wants(queues={"mail": 2, "video": 1}))
        return [worker for worker in self.workers() if self.model.running(worker)]

    def held(self, data: st.DataObject) -> list[ModelJob]:
        """What one worker holds."""
        holders = self.holders()
        return self.model.running(data.draw(st.sampled_from(holders))) if holders else []

    def running(self) -> list[ModelJob]:
        return [job for job in self.model.jobs.values() if job.state is State.RUNNING]

    def ids(self, *states: State) -> list[str]:
        return [job_id for job_id, job in self.model.jobs.items() if not states or job.state in states]

    # Submissions

    @initialize(many=submissions)
    def begin(self, many: list[tuple[str, dict[str, Any]]]) -> None:
        self.submit([self.make(type, given) for type, given in many])
        self.join(None)
        self.join(("a",))

    @rule(data=st.data(), many=submissions, again=st.booleans())
    def submit_some(self, data: st.DataObject, many: list[tuple[str, dict[str, Any]]], again: bool) -> None:  # noqa: FBT001 - drawn
        created = self.submit([self.make(type, given) for type, given in many])
        self.saw(created=any(created), key_was_taken=not all(created))
        if again:
            old = self.model.jobs[data.draw(st.sampled_from(self.ids()))]
            self.saw(repeated_submission=self.submit([old.new]) == [False])

    def make(self, type: str, given: dict[str, Any]) -> NewJob:
        self.made += 1
        return new_job(f"00000000-0000-7000-8000-{self.made:012}", type, "{}", given)

    def submit(self, jobs: list[NewJob]) -> list[bool]:
        receipts = self.store.submit(jobs)
        assert [(each.id, each.state, each.created) for each in receipts] == self.model.submit(jobs)
        return [receipt.created for receipt in receipts]

    # Workers

    def join(self, types: tuple[str, ...] | None) -> None:
        hello = Hello(name="w", host="h", pid=1, version="0", lease_seconds=LEASE, types=types)
        self.newest = self.store.join(hello)
        self.model.join(self.newest, LEASE * SECOND, types or ())

    @rule(
        data=st.data(),
        what=st.sampled_from(("join", "join", "leave", "leave", "drain", "undrain", "undrain")),
        types=st.sampled_from((None, ("a",), ("a", "b"))),
    )
    def change_workers(self, data: st.DataObject, what: str, types: tuple[str, ...] | None) -> None:
        workers = self.holders() if what == "leave" else self.workers()
        if what == "join" or not workers:
            self.join(types)
            return
        worker = data.draw(st.sampled_from(workers))
        if what == "leave":
            returned = self.store.leave(worker)
            assert returned == self.model.leave(worker)
            self.gone.append(worker)
            self.saw(gave_back=returned)
        else:
            getattr(self.store, what)(worker, actor="test")
            self.model.workers[worker].draining = what == "drain"

    @precondition(lambda self: self.workers() != [])
    @rule(data=st.data(), wants=st.sampled_from(WANTS))
    def claim_some(self, data: st.DataObject, wants: Wants) -> None:
        self.claim(data.draw(st.sampled_from(self.workers())), wants)

    def claim(self, worker: str, wants: Wants) -> list[Fence]:
        answer = self.store.exchange(worker, (), wants)
        expected = [self.model.jobs[job_id] for job_id in self.model.claim(worker, wants.queues, wants.anywhere)]
        claimed = [(run.id, run.lease, run.attempt) for run in answer.claimed]
        assert claimed == [(job.new.id, job.lease, job.attempt) for job in expected], (claimed, expected)
        self.saw(claimed=expected, claimed_several=expected[1:], claimed_suspect=any(job.suspect for job in expected))
        self.expire()
        return [run.fence for run in answer.claimed]

    @rule(data=st.data(), what=st.sampled_from(("all", "late", "nothing", "cancelled")))
    def beat_once(self, data: st.DataObject, what: str) -> None:
        before = self.held(data)
        if not before:
            return
        if what == "nothing":
            self.clock.advance(LEASE + 1)
        if what == "cancelled":
            self.act("cancel", [before[0].new.id])
        foreign = [Fence(job.new.id, job.lease - 1) for job in self.running()][:1]
        held = [] if what == "nothing" else [*map(fence_of, before), *foreign]
        self.beat(str(before[0].worker), held, self.seq - 1 if what == "late" else self.seq + 1)
        self.saw(unanswered=any(job.state is not State.RUNNING for job in before))

    def beat(self, worker: str, held: list[Fence], seq: int) -> None:
        self.seq = max(self.seq, seq)
        orders = self.store.heartbeat(worker, [Held(fence) for fence in held], seq)
        assert (set(orders.cancel), set(orders.lost)) == self.model.beat(worker, held, seq)
        assert orders.paused == self.model.paused
        self.saw(told_to_cancel=orders.cancel, told_of_loss=orders.lost)

    # Outcomes

    @rule(data=st.data(), each=st.lists(endings, min_size=4, max_size=4), twice=st.booleans())
    def report_some(self, data: st.DataObject, each: list[Ending], twice: bool) -> None:  # noqa: FBT001 - drawn
        held = self.held(data)
        if not held:
            return
        outcomes = [outcome_of(fence_of(job), ending) for job, ending in zip(held, each, strict=False)]
        again = [outcomes[0], outcome_of(Fence("nobody", 1), each[0])] if twice else []
        accepted = self.report(str(held[0].worker), [*outcomes, *again])
        self.saw(**{how: accepted[0] for how, _ in each[: len(held)]}, reported_many=len(accepted) > len(held) > 1)

    @rule(data=st.data(), ending=endings, stale=st.booleans())
    def report_wrongly(self, data: st.DataObject, ending: Ending, stale: bool) -> None:  # noqa: FBT001 - drawn
        for job in self.held(data)[:1]:
            strangers = [worker for worker in (*self.workers(), *self.gone) if worker != job.worker]
            worker = str(job.worker) if stale or not strangers else data.draw(st.sampled_from(strangers))
            fence = Fence(job.new.id, job.lease - 1 if worker == job.worker else job.lease)
            self.saw(refused=self.report(worker, [outcome_of(fence, ending)]) == [False])

    @precondition(lambda self: self.reported != [])
    @rule(data=st.data())
    def report_again(self, data: st.DataObject) -> None:
        worker, outcome = data.draw(st.sampled_from(self.reported[-5:]))
        (accepted,) = self.report(worker, [outcome])
        self.saw(repeated_report=accepted)

    def report(self, worker: str, outcomes: list[Outcome]) -> list[bool]:
        verdicts = list(self.store.exchange(worker, outcomes, Wants()).verdicts)
        assert verdicts == [self.model.report(worker, outcome) for outcome in outcomes]
        self.reported += [(worker, outcome) for outcome in outcomes]
        self.expire()
        return [isinstance(verdict, Accepted) for verdict in verdicts]

    # Time and upkeep

    @rule(seconds=st.sampled_from((0.5, 1, 3, 10, 60)), limit=st.sampled_from((1, 10_000)))
    def wait(self, seconds: float, limit: int) -> None:
        self.clock.advance(seconds)
        self.turn()
        self.promote()
        self.saw(folded=self.store.fold(limit))

    def turn(self) -> None:
        assert self.store.win_turn(1) == self.model.turn(SECOND)

    @precondition(lambda self: self.running() != [])
    @rule(last=st.sampled_from((None, -1, 1)))
    def fall_silent(self, last: int | None) -> None:
        self.silence(last)

    def silence(self, last: int | None = None) -> None:
        """Nobody beats for a lease, but one that has the last word: in time, or with a number that has been seen."""
        for _ in range(LEASE // 2 + 2):
            self.clock.advance(2)
            self.turn()
        if last is not None and self.workers():
            worker = self.workers()[0]
            self.beat(worker, [*map(fence_of, self.model.running(worker))], self.seq + last)
        before, suspected = self.workers(), any(job.suspect for job in self.running())
        lost = self.store.rescue()
        assert lost == self.model.rescue()
        self.gone += [worker for worker in before if worker not in self.model.workers]
        self.saw(lost=lost, lost_with_a_suspect=lost and suspected)
        self.the_store_is_the_model()
        self.promote()

    @rule(times=st.integers(1, 2))
    def crash(self, times: int) -> None:
        """Somebody new claims what there is, and dies of it."""
        for _ in range(times):
            self.join(None)
            self.claim(self.newest, Wants(anywhere=4))
            if self.running():
                self.silence()

    def promote(self) -> None:
        promoted = self.store.promote()
        assert promoted == self.model.promote()
        self.saw(promoted=promoted)

    def expire(self) -> None:
        """A store may expire what it meets in an exchange, so the number is not compared; what is left is."""
        self.store.expire()
        self.saw(expired=self.model.expire())

    @rule(days=st.sampled_from((0.5, 1, 1)))
    def forget(self, days: float) -> None:
        """Somebody ignorant sets aside what there is, and time passes."""
        self.join(None)
        runs = self.claim(self.newest, Wants(anywhere=3))
        self.report(self.newest, [Released(fence, ReleaseReason.UNKNOWN_TYPE) for fence in runs])
        self.clock.advance(days * DAY / SECOND)
        self.expire()
        buried = self.store.bury()
        assert buried == self.model.bury()
        self.saw(buried=buried)

    @precondition(lambda self: any(not job.live for job in self.model.jobs.values()))
    @rule(retain=st.sampled_from((0, 30)), retain_dead=st.sampled_from((0, 100)))
    def prune(self, retain: int, retain_dead: int) -> None:
        self.clock.advance(1)
        pruned = self.store.prune(retain, retain_dead)
        assert pruned == self.model.prune(retain * SECOND, retain_dead * SECOND)
        self.saw(pruned=pruned)

    # Operators

    @precondition(lambda self: self.ids() != [])
    @rule(
        data=st.data(),
        verb=st.sampled_from(("cancel", "revive", "revive", "revive", "discard", "reschedule")),
        delay=st.sampled_from((None, -5, 20)),
    )
    def operate(self, data: st.DataObject, verb: str, delay: int | None) -> None:
        meant = self.ids(*FAILED_ENDS) if verb in {"revive", "discard"} else self.ids()
        keyed = [job_id for job_id in meant if self.model.jobs[job_id].new.unique_key]
        chosen = data.draw(st.lists(st.sampled_from([*meant, *keyed, *keyed, self.ids()[-1]]), min_size=1, max_size=3, unique=True))
        if verb == "revive":
            self.submit([self.make("a", {"unique_key": "k", "backoff": [2]})])
        run_at = None if delay is None else self.clock() + delay * SECOND
        self.act(verb, chosen, *([run_at] if verb == "reschedule" else []))

    def act(self, verb: str, ids: list[str], *run_at: int | None) -> None:
        if not ids:
            return
        answer: Bulk = getattr(self.store, verb)(Selection(ids=tuple(ids)), *run_at, actor="test")
        meant = [self.clock() if each is None else each for each in run_at]
        reasons = [getattr(self.model, verb)(job_id, *meant) for job_id in sorted(ids, reverse=True)]
        assert answer == Bulk(reasons.count(None), dict(Counter(reason for reason in reasons if reason)))
        self.saw(**{verb: answer.done}, revival_met_a_taken_key=answer.skipped.get("key_taken"))

    @rule(
        queue=st.sampled_from(QUEUES),
        what=st.sampled_from(("pause", "resume", "resume", "resume", "limit", "free", "free", "free")),
        limit=st.integers(0, 2),
    )
    def change_queues(self, queue: str, what: str, limit: int) -> None:
        if what in {"pause", "resume"}:
            getattr(self.store, what)(queue, actor="test")
            (self.model.paused.add if what == "pause" else self.model.paused.discard)(queue)
            return
        self.model.limits.pop(queue, None)
        if what == "limit":
            self.model.limits[queue] = limit
        self.store.limit(queue, self.model.limits.get(queue), actor="test")

    # What must hold after every step

    @invariant()
    def the_store_is_the_model(self) -> None:
        kept = {job.id: job for job in self.store.jobs(EVERYTHING, limit=1_000).jobs}
        assert kept.keys() == self.model.jobs.keys()
        for job_id, job in self.model.jobs.items():
            self.compare(kept[job_id], job)

    def compare(self, kept: Job, job: ModelJob) -> None:
        seen = (kept.state, kept.attempt, kept.losses, kept.lease, kept.aside, kept.suspect, kept.worker_id)
        assert seen == (job.state, job.attempt, job.losses, job.lease, job.aside, job.suspect, job.worker), kept.id
        assert (kept.cancel_requested_at is not None) == job.cancelling
        run_at = from_datetime(kept.run_at)
        assert job.run_at.low <= run_at <= job.run_at.high
        job.run_at = type(job.run_at)(run_at, run_at)

    @invariant()
    def the_counts_are_exact(self) -> None:
        assert self.store.counts() == self.model.counts()

    @invariant()
    def no_invariant_is_violated(self) -> None:
        assert self.store.invariants() == []
