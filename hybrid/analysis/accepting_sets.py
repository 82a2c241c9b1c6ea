"""States from which runs of a product with an automaton are accepted, for certain or by some scheduler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hybrid.properties.automata.automaton import (
    Acceptance,
    DeterministicAutomaton,
    component_fates,
    mark_list,
)
from mtbdd.base.records import Record
from mtbdd.build.automaton_product import AutomatonProduct
from mtbdd.diagrams.manager import Node


class AcceptedPart(Record, eq=False):
    """Pairs in which a scheduler may stay for ever and be accepted: end components of an MDP.

    `choices` has for every layer the pairs whose choice there stays inside, `wanted` the sets that a run has
    to meet again and again, each of them, and can.
    """

    states: Node
    choices: tuple[Node, ...]
    wanted: tuple[Node, ...]


class AcceptedSets(Record, eq=False):
    """States of a product from which runs are accepted.

    From the `certain` pairs every run is; of a chain they are its accepted bottom components. The `parts` are
    those of an MDP; they may overlap.
    """

    certain: Node
    parts: tuple[AcceptedPart, ...] = ()

    @property
    def states(self) -> Node:
        """All of them together."""
        found = self.certain
        for part in self.parts:
            found = found | part.states
        return found


def accepting_sets(
    product: AutomatonProduct, automaton: DeterministicAutomaton, negate: bool
) -> AcceptedSets:
    """Return where the automaton accepts, or with `negate` does not, for certain or for some scheduler.

    Time: one decomposition of a chain; of an MDP one for every generalised Rabin pair of the condition.
    """
    acceptance = automaton.acceptance.negated() if negate else automaton.acceptance
    components, fates = component_fates(automaton)
    fate = [None if fates[c] is None else fates[c] != negate for c in components.tolist()]
    final = [bool((automaton.successors[q] == q).all()) for q in range(automaton.n_states)]
    won = product.within(q for q in range(automaton.n_states) if final[q] and fate[q])
    left = product.within(q for q in range(automaton.n_states) if not final[q] and fate[q] is not False)
    left = left | product.within(q for q in range(automaton.n_states) if final[q] and fate[q] is None)
    if left == product.model.manager.false:
        return AcceptedSets(won)
    if product.model.is_mdp:
        return AcceptedSets(won, tuple(p for _, own in meeting_parts(product, acceptance, left) for p in own))
    return AcceptedSets(won | _bottom_components(product, acceptance, left))


def _bottom_components(product: AutomatonProduct, acceptance: Acceptance, left: Node) -> Node:
    """Return the bottom components of a chain whose marks are accepted."""
    from mtbdd.graph.components import model_end_components

    manager = product.model.manager
    found = model_end_components(product.model, left)
    accepted = [found.single.states & _pointwise(product, acceptance)]
    for component in found.components:
        met = sum(
            1 << i for i, marked in enumerate(product.marks) if component.states & marked != manager.false
        )
        if acceptance.holds(met):
            accepted.append(component.states)
    return manager.disjunction(accepted)


def _pointwise(product: AutomatonProduct, acceptance: Acceptance) -> Node:
    """Return the pairs whose own marks are accepted."""
    manager = product.model.manager
    if acceptance.kind in ("t", "f"):
        return manager.true if acceptance.kind == "t" else manager.false
    if acceptance.kind in ("Inf", "Fin"):
        marked = product.marks[acceptance.mark]
        return marked if acceptance.kind == "Inf" else ~marked
    parts = [_pointwise(product, part) for part in acceptance.parts]
    found = parts[0]
    for part in parts[1:]:
        found = found & part if acceptance.kind == "&" else found | part
    return found


def meeting_parts(
    product: AutomatonProduct, acceptance: Acceptance, within: Node, allowed: Sequence[Node] | None = None
) -> Iterator[tuple[list[Node], list[AcceptedPart]]]:
    """Yield for the pairs of an MDP's condition the sets to meet, and the end components that meet each.

    Components lie in a set and take allowed choices. Those of one state come together, as the first part;
    pairs without a component are left out.
    """
    from mtbdd.graph.components import model_end_components

    false, marks = product.model.manager.false, product.marks
    for finite, infinite in acceptance.pairs():
        inside = within & ~product.model.manager.disjunction(marks[i] for i in mark_list(finite))
        if inside == false:
            continue
        found = model_end_components(product.model, inside, allowed)
        needed = [marks[i] for i in mark_list(infinite)]
        alone = found.single.states
        for marked in needed:
            alone = alone & marked
        parts = [] if alone == false else [AcceptedPart(alone, found.single.choices, ())]
        for component in found.components:
            if all(component.states & marked != false for marked in needed):
                wanted = tuple(component.states & marked for marked in needed)
                parts.append(AcceptedPart(component.states, component.choices, wanted))
        if parts:
            yield needed, parts
