"""Pictures of small automata: states by their distance from the first, marks in braces on the arrows."""

from __future__ import annotations

from hybrid.base.drawing.graph_picture import GraphArrow, GraphNode, GraphPicture
from hybrid.base.errors import OptionError
from hybrid.properties.automata.automaton import DeterministicAutomaton
from hybrid.properties.automata.guards import edges, guard_text, mark_list

MOST_DRAWN = 60
"""States of an automaton that a picture can show."""


def automaton_picture(automaton: DeterministicAutomaton) -> GraphPicture:
    """Return the picture of an automaton; the initial state has a double line.

    Raises
    ------
    OptionError
        It has more than 60 states.
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
