"""Computation tree logic: A and E before a path formula, decided on the graph alone.

Every path operator is an until ``s U t`` or a weak until ``s W t``. The negation of either is the other one,
``!(s U t) = !t W (!s & !t)``. E asks where such a path begins, and A is the negation of E of the negated path
([CES86]). Numbers do not matter. A path counts however improbable it is, and ``A [ F a ]`` is false where a
path avoids `a` for ever with probability 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hybrid.analysis.operator_values import OperatorQuery
from hybrid.analysis.until import until_probabilities
from hybrid.base.errors import UnsupportedError
from hybrid.base.state_values import StateValues
from hybrid.properties.registry import has_path, repeated_form
from hybrid.properties.tree import Path, Quantified
from mtbdd.base.records import Record
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.graph.prob01 import some_always, some_next, some_until, successors
from mtbdd.language.syntax import Expression, Unary

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

    Bounds are refused, and path operators inside of path operators (CTL*). Time: one relational product an
    event and round, rounds as long as the longest shortest path.
    """
    every = formula.quantifier == "A"
    found = _some(model, _wanted(model, formula.path, every, states))
    return model.reachable & ~found if every else found


def witness(model: SymbolicModel, formula: Quantified, states: States) -> Witness | None:
    """Return a path from an initial state that shows why E holds, or why A does not; None if no path does.

    Until its target the path is as short as any; where it has to go on for ever it ends in a loop. No path
    does where E is false, or A true, in every initial state. Time: as for `ctl_states`, and one
    relational product an event and state of the path.
    """
    every = formula.quantifier == "A"
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
        _refuse_nested(path)
        now = states(path)
        return _Wanted(every & ~now if negated else now, none)
    if path.bound is not None:
        raise UnsupportedError(
            f"A [ ] and E [ ] take no bounds in this version: write {path.operator} without one, or ask for "
            "a probability, P>0 [ ... ] or P>=1 [ ... ]"
        )
    for operand in (path.left, path.right):
        if operand is not None:
            _refuse_nested(operand)
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


def _refuse_nested(formula: Expression) -> None:
    """Refuse path operators where only state formulas may stand."""
    if has_path(formula):
        raise UnsupportedError(
            "CTL* is not checked by this version: path operators may not stand inside of path operators or "
            "beside others; put A [ ... ] or E [ ... ] around the inner ones if that is what is meant"
        )


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
