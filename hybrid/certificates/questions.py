"""A property as the operators that have to be certified, inner ones first.

What has no certificate is refused by name, before any work begins.
"""

from __future__ import annotations

from hybrid.certificates.meaning import Meaning
from hybrid.certificates.operators import NUMBER_FILTERS, TRUTH_FILTERS, Operator, Question
from hybrid.errors import NotCertifiableError
from hybrid.properties.tree import (
    STATE_OPERATORS,
    Cumulative,
    Elapsed,
    Filter,
    Instantaneous,
    LongRun,
    Path,
    Probability,
    Quantified,
    Reward,
    SteadyState,
)
from mtbdd.language.model_syntax import RewardStructure
from mtbdd.language.syntax import Binary, Expression, LabelReference, Literal, ModelType, Name, Unary
from mtbdd.language.walk import children, walk

_CONNECTIVES = ("&", "|", "=>", "<=>")


def ask(
    formula: Expression, meaning: Meaning, kind: ModelType, structures: tuple[RewardStructure, ...]
) -> Question:
    """Return what a property asks for.

    Raises
    ------
    NotCertifiableError
        Part of it has no certificate; the message names it.
    """
    reader = _Reader(meaning, kind, structures)
    formula, name, states = _unwrapped(formula, meaning), None, None
    if isinstance(formula, Filter):
        name, states = formula.operator, formula.states
        if states is not None:
            reader.truth_or_number(states)
        place, formula = formula.position, _unwrapped(formula.operand, meaning)
    reader.truth_or_number(formula)
    found = tuple(reader.found.values())
    top = reader.found.get(id(formula))
    value = top if top is not None and top.node.comparison is None else None
    for operator in found:
        if operator is not value and operator.node.comparison is None:
            raise NotCertifiableError(
                f"{operator.node.position}: a value inside of a formula has no certificate; compare it with "
                "a bound, as in P>=0.5 [ ... ], or certify it alone"
            )
    if not found:
        raise NotCertifiableError("the property holds no operator P, S or R: there is nothing to certify")
    if name is not None and name not in (NUMBER_FILTERS if value is not None else TRUTH_FILTERS):
        offered = ", ".join(NUMBER_FILTERS if value is not None else TRUTH_FILTERS)
        raise NotCertifiableError(
            f"{place}: filter({name}, ...) has no certificate; those with one: {offered}"
        )
    return Question(formula, found, value, name, states)


def _unwrapped(formula: Expression, meaning: Meaning) -> Expression:
    """Return what a property that only names another one stands for."""
    while isinstance(formula, LabelReference):
        below = meaning.definition(formula)
        if below is None:
            break
        formula = below
    return formula


class _Reader:
    """Walks through state formulas and gathers operators."""

    def __init__(self, meaning: Meaning, kind: ModelType, structures: tuple[RewardStructure, ...]) -> None:
        self._meaning, self._kind, self._structures = meaning, kind, structures
        self.found: dict[int, Operator] = {}
        self._seen: set[int] = set()

    def truth_or_number(self, e: Expression) -> None:
        """Gather the operators of a state formula, inner ones first."""
        if id(e) in self._seen:
            return
        self._seen.add(id(e))
        if isinstance(e, (Probability, SteadyState, Reward)):
            operator = self._operator(e)
            for operand in (operator.left, operator.right):
                if operand is not None:
                    self.truth_or_number(operand)
            self.found[id(e)] = operator
        elif isinstance(e, Filter):
            raise NotCertifiableError(
                f"{e.position}: a filter inside of a formula has no certificate; certify it alone"
            )
        elif isinstance(e, Quantified):
            raise NotCertifiableError(
                f"{e.position}: {e.quantifier} [ ] is decided on the graph alone and has no certificate"
            )
        elif isinstance(e, Path):
            raise NotCertifiableError(f"{e.position}: a path operator outside of P has no certificate")
        elif isinstance(e, (Name, LabelReference)):
            below = self._meaning.definition(e)
            if below is not None:
                self.truth_or_number(below)
        elif (isinstance(e, Unary) and e.operator == "!") or (
            isinstance(e, Binary) and e.operator in _CONNECTIVES
        ):
            for part in children(e):
                self.truth_or_number(part)
        elif any(isinstance(part, (*STATE_OPERATORS, Path)) for part in self._deep(e)):
            raise NotCertifiableError(
                f"{e.position}: arithmetic and comparisons on the values of operators have no certificate; "
                "certify the operators one by one"
            )

    def _deep(self, e: Expression) -> list[Expression]:
        """Return all nodes of an expression, also those of the labels and formulas that it mentions."""
        found: list[Expression] = []
        waiting, seen = [e], set()
        while waiting:
            for node in walk(waiting.pop()):
                found.append(node)
                below = self._meaning.definition(node)
                if below is not None and id(below) not in seen:
                    seen.add(id(below))
                    waiting.append(below)
        return found

    # ------------------------------------------------------------------ operators

    def _operator(self, node: Probability | SteadyState | Reward) -> Operator:
        if isinstance(node, SteadyState):
            if self._kind is ModelType.MDP:
                raise NotCertifiableError(f"{node.position}: S on an MDP has no certificate")
            return Operator(node, "steady", None, right=node.states)
        maximise = self._maximise(node)
        if isinstance(node, Probability):
            return self._probability(node, node.path, maximise, False)
        return self._reward(node, maximise)

    def _maximise(self, node: Probability | Reward) -> bool | None:
        if self._kind is not ModelType.MDP:
            return None  # a chain has one value, whatever is asked for
        if node.optimum is not None:
            return node.optimum == "max"
        if node.comparison is None:
            letter = node.letter
            raise NotCertifiableError(f"{node.position}: write {letter}min=? or {letter}max=? for an MDP")
        return node.comparison in ("<", "<=")

    def _probability(
        self, node: Probability, path: Expression, maximise: bool | None, complement: bool
    ) -> Operator:
        if isinstance(path, Unary) and path.operator == "!" and any(isinstance(p, Path) for p in walk(path)):
            turned = None if maximise is None else not maximise
            return self._probability(node, path.operand, turned, not complement)
        if not isinstance(path, Path):
            raise NotCertifiableError(
                f"{path.position}: only one path operator has a certificate, not LTL, not a state formula"
            )
        if path.bound is not None:
            raise NotCertifiableError(
                f"{path.position}: a path operator with a bound on steps or time, or on a reward, has no "
                "certificate in this version; certify it without the bound"
            )
        inner = path.right
        if isinstance(inner, Path) and {path.operator, inner.operator} == {"F", "G"} and inner.bound is None:
            return self._repeated(node, path, inner, complement)
        for operand in (path.left, path.right):
            if operand is not None and _has_path(operand):
                raise NotCertifiableError(
                    f"{path.position}: LTL (a path operator inside of a path operator) has no certificate"
                )
        if path.operator == "X":
            return Operator(node, "next", maximise, complement, right=path.right)
        release = path.operator if path.operator in ("G", "W", "R") else ""
        if release and maximise is not None:
            maximise = not maximise
        return Operator(node, "until", maximise, complement != bool(release), path.left, path.right, release)

    def _repeated(self, node: Probability, path: Path, inner: Path, complement: bool) -> Operator:
        """Return ``G F a``, or ``F G a`` as one less the probability of ``G F !a``."""
        if self._kind is ModelType.MDP:
            raise NotCertifiableError(f"{path.position}: G F and F G on an MDP have no certificate")
        if _has_path(inner.right):
            raise NotCertifiableError(f"{path.position}: LTL other than G F a and F G a has no certificate")
        always = path.operator == "F"
        return Operator(
            node, "repeated", None, complement != always, right=inner.right, release="!" if always else ""
        )

    def _reward(self, node: Reward, maximise: bool | None) -> Operator:
        if isinstance(node.structure, Elapsed):
            raise NotCertifiableError(
                f"{node.position}: T has no certificate in this version; certify R for a structure that "
                "earns 1 in every state"
            )
        structure, target = self._structure(node), node.target
        if isinstance(target, LongRun):
            if self._kind is ModelType.MDP:
                raise NotCertifiableError(f"{node.position}: R [ S ] on an MDP has no certificate")
            return Operator(node, "average", None, structure=structure)
        if isinstance(target, (Cumulative, Instantaneous)) and target.time is not None:
            raise NotCertifiableError(
                f"{target.position}: rewards up to a time or at a time have no certificate in this version"
            )
        if isinstance(target, Cumulative):
            if node.discount is not None or target.discount is not None:
                raise NotCertifiableError(
                    f"{target.position}: discounted rewards have no certificate in this version"
                )
            if self._kind is ModelType.MDP:
                raise NotCertifiableError(
                    f"{target.position}: total rewards (C) of an MDP have no certificate in this version; "
                    "certify R [ F states ]"
                )
            return Operator(node, "total", None, structure=structure)
        if isinstance(target, Path) and target.operator == "F" and target.bound is None:
            if _has_path(target.right):
                raise NotCertifiableError(f"{target.position}: LTL has no certificate")
            return Operator(node, "reward", maximise, right=target.right, structure=structure)
        raise NotCertifiableError(f"{target.position}: of rewards only F, C and S have certificates")

    def _structure(self, node: Reward) -> int:
        names = [structure.name for structure in self._structures]
        if not names:
            raise NotCertifiableError(f"{node.position}: the model has no reward structure")
        if node.structure is None:
            return 0
        if isinstance(node.structure, str):
            return names.index(node.structure)
        return int(self._meaning.value(node.structure)) - 1


def _has_path(formula: Expression) -> bool:
    """Whether a path operator occurs outside of P, S, R and filters."""
    waiting = [formula]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Path):
            return True
        if not isinstance(part, (*STATE_OPERATORS, Literal)):
            waiting.extend(children(part))
    return False
