"""Automata as text in the Hanoi omega-automata format, and as drawings."""

from __future__ import annotations

from collections.abc import Iterator

from hybrid.base.drawing.graphs import GraphArrow, GraphNode, GraphPicture
from hybrid.base.errors import OptionError
from hybrid.properties.automata.automaton import DeterministicAutomaton
from hybrid.properties.automata.guards import edges, guard_text, mark_list

# Pictures of small automata: states by their distance from the first, marks in braces on the arrows.

MOST_DRAWN = 60
"""States of an automaton that a picture can show."""


def automaton_picture(automaton: DeterministicAutomaton) -> GraphPicture:
    """Return the picture of an automaton; the initial state has a double line.

    Raises OptionError: it has more than 60 states.
    """
    if automaton.n_states > MOST_DRAWN:
        raise OptionError(
            f"a picture of an automaton shows at most {MOST_DRAWN} states, got {automaton.n_states}; "
            "print it, or split the formula"
        )
    layers = {automaton.initial: 0}
    order = [automaton.initial]
    arrows = []
    for state in order:
        for letters, target, marks in edges(automaton, state):
            if target not in layers:
                layers[target] = layers[state] + 1
                order.append(target)
            text = guard_text(letters, len(automaton.propositions), lambda i: automaton.propositions[i])
            if marks:
                text += f" {{{' '.join(map(str, mark_list(marks)))}}}"
            arrows.append((state, target, text))
    place = {state: number for number, state in enumerate(order)}
    nodes = [GraphNode((str(state),), layers[state], "node", state == automaton.initial) for state in order]
    return GraphPicture(
        nodes,
        [GraphArrow(place[source], place[target], text) for source, target, text in arrows],
        title=f"{automaton.name}: {automaton.acceptance}",
    )


def hoa_text(automaton: DeterministicAutomaton) -> str:
    """Return an automaton in the HOA format ([HOA15]), version 1, with labels and marks on transitions.

    Notes
    -----
    Time: O(n 2**k) for n states and k propositions, and the search for short labels.
    """
    return "\n".join(_lines(automaton)) + "\n"


def _lines(automaton: DeterministicAutomaton) -> Iterator[str]:
    names = "".join(f" {_quoted(name)}" for name in automaton.propositions)
    yield "HOA: v1"
    if automaton.name:
        yield f"name: {_quoted(automaton.name)}"
    yield f"States: {automaton.n_states}"
    yield f"Start: {automaton.initial}"
    yield f"AP: {len(automaton.propositions)}{names}"
    yield from _known_name(automaton)
    yield f"Acceptance: {automaton.n_marks} {automaton.acceptance}"
    yield "properties: trans-labels explicit-labels trans-acc deterministic complete"
    yield "--BODY--"
    for state in range(automaton.n_states):
        yield f"State: {state}"
        for letters, target, marks in edges(automaton, state):
            label = guard_text(letters, len(automaton.propositions), str)
            yield f"[{label}] {target}{_braces(marks)}"
    yield "--END--"


def _known_name(automaton: DeterministicAutomaton) -> Iterator[str]:
    """Yield the header with the name of a condition that has one."""
    known = {"Inf(0)": "Buchi", "Fin(0)": "co-Buchi", "t": "all", "f": "none"}
    name = known.get(str(automaton.acceptance))
    if name is not None:
        yield f"acc-name: {name}"


def _braces(marks: int) -> str:
    return f" {{{' '.join(map(str, mark_list(marks)))}}}" if marks else ""


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def automaton_dot(automaton: DeterministicAutomaton) -> str:
    """Return a drawing of an automaton in Graphviz's language; marks stand in braces on the arrows."""
    title = _quoted(f"{automaton.name}\n{automaton.acceptance}".strip()).replace("\n", "\\n")
    lines = [
        "digraph automaton {",
        "  rankdir=LR;",
        f"  label={title};",
        "  node [shape=circle];",
        "  start [shape=point];",
        f"  start -> {automaton.initial};",
    ]
    for state in range(automaton.n_states):
        for letters, target, marks in edges(automaton, state):
            guard = guard_text(letters, len(automaton.propositions), lambda i: automaton.propositions[i])
            lines.append(f"  {state} -> {target} [label={_quoted(guard + _braces(marks))}];")
    return "\n".join([*lines, "}"]) + "\n"
