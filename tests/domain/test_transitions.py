"""The transition table is complete, and the functions that choose among its targets stay inside it."""

from itertools import product

import pytest

from workmill.domain.errors import IllegalTransition
from workmill.domain.states import FINAL, LIVE, REVIVABLE, WAITING, State
from workmill.domain.transitions import (
    REMOVED,
    TRANSITIONS,
    Event,
    after_failure,
    after_loss,
    after_release,
    ready_state,
    sources,
    targets,
)

EVERY_PAIR = list(product([None, *State], Event))
BOOLEANS = (False, True)


@pytest.mark.parametrize(("state", "event"), EVERY_PAIR)
def test_the_table_is_total_an_event_leads_somewhere_or_is_illegal(state: State | None, event: Event) -> None:
    if (state, event) in TRANSITIONS:
        assert targets(state, event) == TRANSITIONS[state, event] != ()
    else:
        with pytest.raises(IllegalTransition) as refusal:
            targets(state, event)
        assert (refusal.value.state, refusal.value.event) == (state, event)


@pytest.mark.parametrize("event", Event)
def test_every_event_can_happen_somewhere(event: Event) -> None:
    assert sources(event) or (None, event) in TRANSITIONS


@pytest.mark.parametrize("state", State)
def test_every_state_can_be_reached(state: State) -> None:
    assert any(state in leads for leads in TRANSITIONS.values())


@pytest.mark.parametrize("state", LIVE)
def test_no_live_state_is_a_trap(state: State) -> None:
    assert any(source is state for source, _ in TRANSITIONS)


@pytest.mark.parametrize("state", FINAL)
def test_a_final_state_is_left_only_by_a_revival_or_a_removal(state: State) -> None:
    assert {event for source, event in TRANSITIONS if source is state} <= {Event.REVIVE, Event.DISCARD}


def test_success_is_never_undone() -> None:
    assert not [event for state, event in TRANSITIONS if state is State.SUCCEEDED]


def test_the_groups_of_states_are_those_of_the_table() -> None:
    assert sources(Event.CANCEL) == sources(Event.EXPIRE) == WAITING
    assert sources(Event.REVIVE) == sources(Event.DISCARD) == REVIVABLE
    assert WAITING | {State.RUNNING} == LIVE
    assert frozenset(State) - LIVE == FINAL


def test_only_a_claim_leads_to_running() -> None:
    assert [pair for pair, leads in TRANSITIONS.items() if State.RUNNING in leads] == [(State.QUEUED, Event.CLAIM)]


def test_only_a_discard_removes_a_job() -> None:
    assert {event for (_, event), leads in TRANSITIONS.items() if REMOVED in leads} == {Event.DISCARD}


@pytest.mark.parametrize(("final", "cancelling", "delay", "attempt"), list(product(BOOLEANS, BOOLEANS, (0, 1), (1, 2, 3))))
def test_where_a_failure_leads_is_in_the_table(*, final: bool, cancelling: bool, delay: int, attempt: int) -> None:
    state = after_failure(attempt=attempt, max_attempts=2, final=final, cancelling=cancelling, delay=delay)

    assert state in targets(State.RUNNING, Event.FAIL)


@pytest.mark.parametrize(("cancelling", "delay"), list(product(BOOLEANS, (0, 1))))
def test_where_a_release_leads_is_in_the_table(*, cancelling: bool, delay: int) -> None:
    assert after_release(cancelling=cancelling, delay=delay) in targets(State.RUNNING, Event.RELEASE)


@pytest.mark.parametrize(("cancelling", "losses"), list(product(BOOLEANS, range(5))))
def test_where_a_loss_leads_is_in_the_table(*, cancelling: bool, losses: int) -> None:
    assert after_loss(losses=losses, max_losses=3, cancelling=cancelling) in targets(State.RUNNING, Event.LOSE)


def test_a_requested_cancel_wins_over_attempts_losses_and_delays() -> None:
    assert after_failure(attempt=5, max_attempts=5, final=True, cancelling=True, delay=9) is State.CANCELLED
    assert after_release(cancelling=True, delay=9) is State.CANCELLED
    assert after_loss(losses=9, max_losses=3, cancelling=True) is State.CANCELLED


def test_a_failure_is_tried_again_until_the_attempts_are_used_up() -> None:
    assert after_failure(attempt=4, max_attempts=5, final=False, cancelling=False, delay=1) is State.RETRYING
    assert after_failure(attempt=4, max_attempts=5, final=False, cancelling=False, delay=0) is State.QUEUED
    assert after_failure(attempt=5, max_attempts=5, final=False, cancelling=False, delay=1) is State.DEAD
    assert after_failure(attempt=1, max_attempts=5, final=True, cancelling=False, delay=1) is State.DEAD


def test_a_loss_is_tried_again_below_the_loss_limit() -> None:
    assert after_loss(losses=2, max_losses=3, cancelling=False) is State.RETRYING
    assert after_loss(losses=3, max_losses=3, cancelling=False) is State.DEAD


def test_what_is_not_due_waits_where_its_event_says() -> None:
    assert ready_state(due=True, event=Event.FAIL) is State.QUEUED
    assert ready_state(due=False, event=Event.FAIL) is State.RETRYING
    assert ready_state(due=False, event=Event.RELEASE) is State.SCHEDULED
    assert ready_state(due=False, event=Event.SUBMIT) is State.SCHEDULED
