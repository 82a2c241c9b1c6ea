"""A and E before a path formula (CTL and CTL*), decided on the graph alone.

Every path operator is an until ``s U t`` or a weak until ``s W t``. The negation of either is the other one,
``!(s U t) = !t W (!s & !t)``. E asks where such a path begins, and A is the negation of E of the negated path
([CES86]). Numbers do not matter. A path counts however improbable it is, and ``A [ F a ]`` is false where a
path avoids `a` for ever with probability 0.

Other path formulas are those of linear temporal logic. E asks for an accepted path of the product with
their deterministic automaton. Each of its generalised Rabin pairs takes a greatest fixed point ([EL87]).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hybrid.analysis.operator_values import OperatorQuery
from hybrid.analysis.until import until_probabilities
from hybrid.base.errors import UnsupportedError
from hybrid.base.state_values import StateValues
from hybrid.properties.registry import has_path, repeated_form
from hybrid.properties.tree import AutomatonPath, Path, Quantified, RewardBound, RewardBounds
from mtbdd.base.records import Record
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.graph.prob01 import some_always, some_next, some_until, successors
from mtbdd.language.syntax import Expression, Unary

if TYPE_CHECKING:
    from mtbdd.build.automaton_product import AutomatonProduct

# Recurrence and persistence, ``G F a`` and ``F G a``, by end components.


def repeated_probabilities(a: OperatorQuery) -> StateValues:
    """Return the probability of ``G F states`` or ``F G states``.

    In the long run a scheduler stays in an end component, and can visit all of it again and again: the
    greatest probability of ``G F`` is that of reaching one that meets the states, of ``F G`` that of reaching
    one inside them. The least is one less the greatest of the negation. A chain's end components are its
    bottom components (Baier and Katoen, Principles of Model Checking, sections 10.1.2 and 10.6.4).
    """
    form = repeated_form(a.path)
    assert form is not None
    model, states, always = a.model, a.states(form[0]), form[1]
    is_least = model.is_mdp and not a.maximise
    if is_least:
        states, always = model.reachable & ~states, not always
    ends = repeated_target(model, states, always)
    found = until_probabilities(model, model.reachable, ends, True, a.options, a.work, None, a.scope)
    return found.complement() if is_least else found


def repeated_target(model: SymbolicModel, states: Node, always: bool) -> Node:
    """Return the end components, as one set, where ``G F states`` (`always`: ``F G states``) can hold."""
    from mtbdd.graph.components import model_end_components

    if always and model.is_mdp:
        return model_end_components(model, states).states
    components = model_end_components(model)
    met = [c.states for c in components.components]
    if always:
        met = [c for c in met if c & ~states == model.manager.false]
    else:
        met = [c for c in met if c & states != model.manager.false]
    return model.manager.disjunction([components.single.states & states, *met])


States = Callable[[Expression], Node]


class Witness(Record):
    """A path that shows why a formula with A or E is false or true.

    Attributes
    ----------
    states : tuple of dict of str to (bool or int)
        The states of the path, by variable, from an initial state on.
    loop : int or None
        Where the path goes on after its last state, for ever round; None: it has shown it at its last state.
    holds : bool
        Whether the path shows that E holds, or that A does not.
    """

    states: tuple[dict[str, bool | int], ...]
    loop: int | None
    holds: bool

    def record(self) -> dict[str, Any]:
        """Return the path as plain JSON values: `states`, `loop`, `holds`."""
        return {"states": list(self.states), "loop": self.loop, "holds": self.holds}


class _Wanted(Record):
    """A path's obligation: step into `target`, or stay in `safe` until `target`, or for ever if `weak`."""

    target: Node
    safe: Node | None = None
    weak: bool = False


def ctl_states(model: SymbolicModel, formula: Quantified, states: States) -> Node:
    """Return the reachable states where A or E holds; of a CTMC the steps count, not the time.

    Bounds count steps; on time they are refused. Time: one relational product an event and round, rounds as
    long as the longest shortest path; where path operators stand in one another, as many such searches as the
    fixed point has rounds.
    """
    every = formula.quantifier == "A"
    if _is_ctl(formula.path):
        found = _some(model, _wanted(model, formula.path, every, states))
    else:
        found = _Runs.of(model, formula.path, every, states).beginnings()
    return model.reachable & ~found if every else found


def witness(model: SymbolicModel, formula: Quantified, states: States) -> Witness | None:
    """Return a path from an initial state that shows why E holds, or why A does not; None if no path does.

    Until its target the path is as short as any; where it has to go on for ever it ends in a loop. No path
    does where E is false, or A true, in every initial state. Time: as for `ctl_states`, and one
    relational product an event and state of the path.
    """
    every = formula.quantifier == "A"
    if not _is_ctl(formula.path):
        return _Runs.of(model, formula.path, every, states).witness(model, not every)
    wanted = _wanted(model, formula.path, every, states)
    start = model.initial & _some(model, wanted)
    if start == model.manager.false:
        return None
    state = _first(model, start)
    if wanted.safe is None:
        path, loop = [state, _first(model, successors(model, state) & wanted.target)], None
    else:
        reach = some_until(model, wanted.safe, wanted.target)
        if state & reach != model.manager.false:
            path, loop = _shortest(model, state, wanted.safe, wanted.target), None
        else:
            path, loop = _lasso(model, state, some_always(model, wanted.safe))
    return Witness(tuple(model.first(part) for part in path), loop, not every)


def _wanted(model: SymbolicModel, path: Expression, negated: bool, states: States) -> _Wanted:
    """Return what a path, or the negation of one, has to do."""
    if isinstance(path, Unary) and path.operator == "!" and has_path(path.operand):
        return _wanted(model, path.operand, not negated, states)
    every, none = model.reachable, model.manager.false
    if not isinstance(path, Path):
        now = states(path)
        return _Wanted(every & ~now if negated else now, none)
    right = states(path.right)
    left = every if path.left is None else states(path.left)
    if path.operator == "X":
        return _Wanted(every & ~right if negated else right)
    safe, target, weak = {
        "U": (left, right, False),
        "F": (every, right, False),
        "G": (right, none, True),
        "W": (left, right, True),
        "R": (right, left & right, True),
    }[path.operator]
    if negated:
        safe, target, weak = every & ~target, every & ~safe & ~target, not weak
    return _Wanted(target, safe, weak)


def _is_ctl(path: Expression) -> bool:
    """Whether a path formula is one path operator without a bound, negated or not, over state formulas."""
    while isinstance(path, Unary) and path.operator == "!":
        path = path.operand
    if isinstance(path, Path):
        operands = [part for part in (path.left, path.right) if part is not None]
        return path.bound is None and not any(map(has_path, operands))
    return not has_path(path)


def _some(model: SymbolicModel, wanted: _Wanted) -> Node:
    """Return the states where a path begins that does what is wanted."""
    if wanted.safe is None:
        return some_next(model, wanted.target)
    found = some_until(model, wanted.safe, wanted.target)
    return found | some_always(model, wanted.safe) if wanted.weak else found


# ------------------------------------------------------------------ paths


def _first(model: SymbolicModel, states: Node) -> Node:
    """Return the set of the first state of a non-empty set, in the order of the text."""
    return model.encoding.state(model.first(states))


def _shortest(model: SymbolicModel, state: Node, safe: Node, target: Node) -> list[Node]:
    """Return a shortest path through `safe` into `target`, its first state given."""
    false = model.manager.false
    found = target
    rings = [target]
    while state & found == false:
        ring = some_next(model, rings[-1]) & safe & ~found
        found = found | ring
        rings.append(ring)
    path = [state]
    for ring in reversed(rings[:-1]):
        path.append(_first(model, successors(model, path[-1]) & ring))
    return path


def _lasso(model: SymbolicModel, state: Node, inside: Node) -> tuple[list[Node], int]:
    """Return a path that stays in a set, whose states all have successors in it, and where it comes back."""
    false = model.manager.false
    path, seen = [state], state
    while True:
        ahead = successors(model, path[-1]) & inside
        back = ahead & seen
        if back != false:
            return path, next(i for i, part in enumerate(path) if part & back != false)
        path.append(_first(model, ahead))
        seen = seen | path[-1]


# ------------------------------------------------------------------ linear temporal logic


class _Runs(Record, eq=False):
    """Paths of the product with an automaton.

    Attributes
    ----------
    product : AutomatonProduct
    staying : tuple of (Node, tuple of Node)
        Pairs from which a path that does what is wanted never goes, and the sets of them that it meets again
        and again.
    """

    product: AutomatonProduct
    staying: tuple[tuple[Node, tuple[Node, ...]], ...]

    @classmethod
    def of(cls, model: SymbolicModel, path: Expression, negated: bool, states: States) -> _Runs:
        """Return the paths that satisfy a formula, or with `negated` its negation."""
        from hybrid.analysis.ltl import automaton_moves, hoa_automaton, model_formula
        from hybrid.properties.automata.automaton import mark_list
        from hybrid.properties.automata.translation import translate
        from mtbdd.build.automaton_product import automaton_product

        if isinstance(path, Path) and isinstance(path.bound, (RewardBound, RewardBounds)):
            raise UnsupportedError(
                f"A [ ] and E [ ] take no bounds on rewards in this version: write {path.operator} without "
                "one, or ask for a probability, P>0 [ ... ] or P>=1 [ ... ]"
            )
        if isinstance(path, AutomatonPath):
            automaton, propositions = hoa_automaton(model, path, states)
        else:
            formula = model_formula(model, path, states)
            propositions = formula.propositions
            names = [f"p{i}" for i in range(len(propositions))]
            automaton = translate(formula.store, formula.formula, names)
        product = automaton_product(model, propositions, automaton_moves(automaton), automaton.n_marks)
        acceptance = automaton.acceptance.negated() if negated else automaton.acceptance
        marks, found = product.marks, []
        for finite, infinite in acceptance.pairs():
            inside = product.model.reachable & ~product.model.manager.disjunction(
                marks[i] for i in mark_list(finite)
            )
            wanted = [marks[i] for i in mark_list(infinite)]
            kept = _again(product.model, inside, wanted)
            found.append((kept, tuple(kept & own for own in wanted)))
        return cls(product, tuple(found))

    def beginnings(self) -> Node:
        """Return the model's states in which such a path begins."""
        pairs = self.product.model
        every = pairs.manager.disjunction(kept for kept, _ in self.staying)
        return self.product.restored(some_until(pairs, pairs.reachable, every))

    def witness(self, model: SymbolicModel, holds: bool) -> Witness | None:
        """Return such a path from an initial state, which ends in a loop; None if there is none."""
        pairs, false = self.product.model, self.product.model.manager.false
        for kept, wanted in self.staying:
            start = pairs.initial & some_until(pairs, pairs.reachable, kept)
            if start == false:
                continue
            path = _shortest(pairs, _first(pairs, start), pairs.reachable, kept)
            # Each round meets all sets in turn, by the same way from the same state.
            rounds: list[tuple[Node, int]] = []
            while all(path[-1] != begin for begin, _ in rounds):
                rounds.append((path[-1], len(path) - 1))
                for target in wanted or (kept,):
                    ahead = _first(pairs, successors(pairs, path[-1]) & kept)
                    path += _shortest(pairs, ahead, kept, target)
            loop = next(place for begin, place in rounds if begin == path[-1])
            names = [variable.name for variable in model.encoding.variables]
            shown = [pairs.first(part) for part in path[:-1]]
            return Witness(tuple({name: own[name] for name in names} for own in shown), loop, holds)
        return None


def _again(model: SymbolicModel, inside: Node, wanted: Sequence[Node]) -> Node:
    """Return where a path begins that stays in a set and meets others again and again."""
    found = some_always(model, inside)
    while wanted:
        before = found
        for own in wanted:
            found = found & some_next(model, some_until(model, found, found & own))
        if found == before:
            break
    return found
