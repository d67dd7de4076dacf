"""Draw docs/states.md from the transition table."""

from collections import defaultdict

from pages import NOTICE, ROOT, publish
from workmill.domain.states import State
from workmill.domain.transitions import TRANSITIONS, Event

Sources = tuple[State | None, ...]
Targets = tuple[State | None, ...]

FEW = 2
"""An event that can happen in more states than this is drawn apart, from all of them together."""

PAGE = """\
# The states of a job

A job is in one of ten states, and one table decides how it moves: `TRANSITIONS` in `workmill.domain.transitions`. The pictures
and the list below are drawn from it, and every statement that writes a state is tested against it.

The life of a job:

```mermaid
{life}```

What can happen in many states, and from all of them in the same way:

```mermaid
{many}```

The whole table:

{table}"""


def transitions_by_event() -> dict[Event, dict[Targets, Sources]]:
    """For each event, the states it happens in, put together where it leads to the same states."""
    grouped: dict[Event, dict[Targets, Sources]] = defaultdict(dict)
    for (source, event), targets in TRANSITIONS.items():
        grouped[event][targets] = (*grouped[event].get(targets, ()), source)
    return grouped


def words(states: Sources) -> str:
    return ", ".join(state or "–" for state in states)


def diagram(edges: dict[tuple[str, str], list[str]], names: dict[str, str]) -> str:
    lines = ["stateDiagram-v2"]
    lines += [f'    state "{text}" as {node}' for node, text in names.items()]
    lines += [f"    {source} --> {target}: {', '.join(events)}" for (source, target), events in edges.items()]
    return "\n".join(lines) + "\n"


def life() -> str:
    """The events that can happen in one or two states, edges between the same two states put together."""
    edges: dict[tuple[str, str], list[str]] = defaultdict(list)
    for event, moves in transitions_by_event().items():
        for targets, sources in moves.items():
            if len(sources) <= FEW:
                for source in sources:
                    for target in targets:
                        edges[source or "[*]", target or "[*]"].append(event)
    return diagram(edges, {})


def many() -> str:
    """The events that can happen in more states, each set of them as one node."""
    edges: dict[tuple[str, str], list[str]] = defaultdict(list)
    names: dict[str, str] = {}
    for event, moves in transitions_by_event().items():
        for targets, sources in moves.items():
            if len(sources) > FEW:
                node = "_".join(state or "new" for state in sources)
                names[node] = words(sources)
                for target in targets:
                    edges[node, target or "[*]"].append(event)
    return diagram(edges, names)


def table() -> str:
    rows = ["| event | from | to |", "|---|---|---|"]
    for event, moves in transitions_by_event().items():
        rows += [
            f"| {event} | {words(sources)} | {' or '.join(target or 'removed' for target in targets)} |"
            for targets, sources in moves.items()
        ]
    return "\n".join(rows) + "\n"


def main() -> None:
    page = NOTICE.format(script="scripts/states_diagram.py") + PAGE.format(life=life(), many=many(), table=table())
    publish({ROOT / "docs" / "states.md": page})


if __name__ == "__main__":
    main()
