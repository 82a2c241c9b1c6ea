"""The model and the property that a certificate speaks of, read from their texts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import NotCertifiableError
from hybrid.checking.certificates.archive import digest
from hybrid.checking.certificates.judge import NUMBER_FILTERS, TRUTH_FILTERS, Operator, Question
from hybrid.checking.certificates.states import (
    Exact,
    RationalTable,
    States,
    TextSemantics,
    exact_number,
    initial_numbers,
)
from hybrid.checking.certificates.transitions import Transitions, expand
from hybrid.properties import parse_properties, registry, resolve_properties
from hybrid.properties.registry import Capability, asked_quantity, repeated_form, without_negations
from hybrid.properties.tree import STATE_OPERATORS, Filter, Path, Probability, Property, Reward, SteadyState
from mtbdd.language import parse_model, resolve
from mtbdd.language.syntax import (
    Binary,
    Expression,
    LabelReference,
    ModelSyntax,
    ModelType,
    Name,
    ResolvedModel,
    RewardStructure,
    Unary,
)
from mtbdd.language.tokens import read_source
from mtbdd.language.walk import children, walk

# A property as the operators that have to be certified, inner ones first.
#
# What has no certificate is refused by name, before any work begins.

_CONNECTIVES = ("&", "|", "=>", "<=>")


def _refusal(formula: Expression, reason: str) -> NotCertifiableError:
    """Return why an operator has no certificate, with the place of what it asks about."""
    asked = formula
    if isinstance(formula, Probability):
        asked = without_negations(formula.path)[0]
    elif isinstance(formula, Reward) and formula.letter == "R":
        asked = formula.target
    return NotCertifiableError(f"{asked.position}: {reason}")


CERTIFIED = Capability[Operator](_refusal, "{} has no certificate in this version")
"""Methods of `_TextReader` that return what is to be certified of P, S and R."""
CERTIFIED.refuses(
    "{} has no certificate, only one path operator has",
    *(registry.NOW, registry.LTL, registry.AUTOMATON, registry.CONDITIONAL),
)
CERTIFIED.refuses(
    "{}, with a bound on steps or time or on a reward, has no certificate; certify it without the bound",
    *(registry.WINDOW, registry.REWARD_BOUNDED, registry.REWARDS_BOUNDED),
)
CERTIFIED.refuses(
    "{}, a reward up to a time or at one, has no certificate", registry.CUMULATIVE, registry.INSTANTANEOUS
)
CERTIFIED.refuses(
    "{} has no certificate; certify R for a structure that earns 1 in every state", registry.ELAPSED_TIME
)
CERTIFIED.refuses("{} inside of a formula has no certificate; certify it alone", registry.FILTER)
CERTIFIED.refuses("{} is decided on the graph alone and has no certificate", registry.QUANTIFIED)


def ask(
    formula: Expression, meaning: TextSemantics, kind: ModelType, structures: tuple[RewardStructure, ...]
) -> Question:
    """Return what a property asks for; NotCertifiableError names the part that has no certificate."""
    reader = _TextReader(meaning, kind, structures)
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


def _unwrapped(formula: Expression, meaning: TextSemantics) -> Expression:
    """Return what a property that only names another one stands for."""
    while isinstance(formula, LabelReference):
        below = meaning.definition(formula)
        if below is None:
            break
        formula = below
    return formula


class _TextReader:
    """Walks through state formulas and gathers operators."""

    def __init__(
        self, meaning: TextSemantics, kind: ModelType, structures: tuple[RewardStructure, ...]
    ) -> None:
        self._meaning, self._kind, self._structures = meaning, kind, structures
        self.found: dict[int, Operator] = {}
        self._seen: set[int] = set()

    def truth_or_number(self, e: Expression) -> None:
        """Gather the operators of a state formula, inner ones first."""
        if id(e) in self._seen:
            return
        self._seen.add(id(e))
        if isinstance(e, STATE_OPERATORS):
            operator = CERTIFIED.of(e)(self, e)
            for operand in (operator.left, operator.right):
                if operand is not None:
                    self.truth_or_number(operand)
            self.found[id(e)] = operator
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

    @CERTIFIED.answers(registry.STEADY)
    def _steady(self, node: SteadyState) -> Operator:
        return Operator(node, "steady", self._maximise(node), right=node.states)

    def _refuse_choices(self, node: Expression, advice: str = "") -> None:
        """Refuse what has a certificate on chains alone."""
        quantity = asked_quantity(node)
        if self._kind is ModelType.MDP and quantity is not None:
            raise _refusal(node, f"{quantity.name} on an MDP has no certificate in this version{advice}")

    def _maximise(self, node: Probability | SteadyState | Reward) -> bool | None:
        if self._kind is not ModelType.MDP:
            return None  # a chain has one value for min and max
        if node.optimum is not None:
            return node.optimum == "max"
        if node.comparison is None:
            letter = node.letter
            raise NotCertifiableError(f"{node.position}: write {letter}min=? or {letter}max=? for an MDP")
        return node.comparison in ("<", "<=")

    @CERTIFIED.answers(registry.NEXT, registry.UNTIL)
    def _one_operator(self, node: Probability) -> Operator:
        path, complement, maximise = self._path(node)
        if path.operator == "X":
            return Operator(node, "next", maximise, complement, right=path.right)
        release = path.operator if path.operator in ("G", "W", "R") else ""
        if release and maximise is not None:
            maximise = not maximise
        return Operator(node, "until", maximise, complement != bool(release), path.left, path.right, release)

    @CERTIFIED.answers(registry.REPEATED)
    def _repeated(self, node: Probability) -> Operator:
        """Return ``G F a``, or ``F G a`` as one less the probability of ``G F !a``."""
        self._refuse_choices(node)
        path, complement, _ = self._path(node)
        form = repeated_form(path)
        assert form is not None
        below, always = form
        return Operator(
            node, "repeated", None, complement != always, right=below, release="!" if always else ""
        )

    def _path(self, node: Probability) -> tuple[Path, bool, bool | None]:
        """Return a path operator without negations, whether to take the complement, and the optimum."""
        maximise = self._maximise(node)
        path, negations = without_negations(node.path)
        self._refuse_other(node, path)
        complement = negations % 2 == 1
        return path, complement, maximise if maximise is None else maximise != complement

    @CERTIFIED.answers(registry.AVERAGE)
    def _average(self, node: Reward) -> Operator:
        return Operator(node, "average", self._maximise(node), structure=self._structure(node))

    @CERTIFIED.answers(registry.TOTAL)
    def _total(self, node: Reward) -> Operator:
        self._refuse_choices(node, "; certify R [ F states ]")
        return Operator(node, "total", None, structure=self._structure(node))

    @CERTIFIED.answers(registry.REACHED)
    def _reached(self, node: Any) -> Operator:
        return Operator(
            node, "reward", self._maximise(node), right=node.target.right, structure=self._structure(node)
        )

    def _refuse_other(self, node: Expression, asked: Expression) -> None:
        """Refuse what has no certificate, without the registry: the verifier is independent."""
        if any(getattr(asked, part, None) is not None for part in ("bound", "time", "discount", "condition")):
            raise _refusal(node, "expected a question without bound, time, discount and condition")

    def _structure(self, node: Reward) -> int:
        self._refuse_other(node, node)
        self._refuse_other(node, node.target)
        names = [structure.name for structure in self._structures]
        if not names:
            raise NotCertifiableError(f"{node.position}: the model has no reward structure")
        if node.structure is None:
            return 0
        if isinstance(node.structure, str):
            return names.index(node.structure)
        return int(self._meaning.value(node.structure)) - 1


@dataclass(frozen=True)
class PropertyText:
    """One property of a text, with what is declared beside it.

    `index` says which of its properties, from 0; `constants` has values of those that the text leaves open.
    """

    text: str
    index: int
    constants: Mapping[str, object]


class CertifiedText:
    """A model's text with its constants, those that the text leaves open; others are passed over.

    Raises LanguageError where the text is at fault, and NotCertifiableError for `system ... endsystem`.
    """

    def __init__(self, path: str | os.PathLike[str], constants: Mapping[str, object]) -> None:
        self.file = os.fspath(path)
        self.text = read_source(path)
        self.syntax: ModelSyntax = parse_model(self.text, self.file)
        self.model: ResolvedModel = resolve(self.syntax, constants, ignore_unknown=True)
        if self.syntax.systems:
            raise NotCertifiableError(
                f"{self.file}: models with system ... endsystem have no certificates in this version"
            )
        open_names = {c.name for c in self.syntax.constants if c.value is None}
        self.given = {name: value for name, value in constants.items() if name in open_names}
        self.constants = {name: number_text(value) for name, value in self.given.items()}
        self.digest = digest(self.text, self.constants)

    def question(self, wanted: PropertyText) -> tuple[Property, TextSemantics, Question]:
        """Return a property, what the names in it mean, and its operators.

        Raises LanguageError where the property is at fault, and NotCertifiableError where it has no
        certificate.
        """
        file = "<property>"
        parsed = parse_properties(wanted.text, file, keep_faults=True)
        if not 0 <= wanted.index < len(parsed.properties):
            raise NotCertifiableError(f"the text holds no property number {wanted.index}")
        checked = resolve_properties(parsed, self.model, wanted.constants, keep_faults=True)
        error = checked.properties[wanted.index].error
        if error is not None:
            raise error
        prop = parsed.properties[wanted.index]
        syntax = self.syntax
        labels = [*syntax.labels, *parsed.labels]
        meaning = TextSemantics(
            {self.file: self.text, file: wanted.text},
            [*syntax.constants, *parsed.constants],
            [*syntax.formulas, *parsed.formulas],
            labels,
            {**self.given, **wanted.constants},
            [v.name for v in self.model.variables],
        )
        for other in parsed.properties:
            if other.name is not None and other.error is None:
                meaning.labels.setdefault(other.name, other.formula)
        return prop, meaning, ask(prop.formula, meaning, syntax.type, syntax.rewards)

    def transitions(self, numbers: NDArray[np.int64], meaning: TextSemantics) -> Transitions:
        """Return the transitions of a list of states that holds all reachable ones.

        Raises CertificateError where it does not, or the model is at fault in one of them.
        """
        table, variables = RationalTable(), self.model.variables
        states = States(numbers, variables, meaning, table)
        initial = initial_numbers(variables, self.syntax.initial, meaning, table)
        return expand(self.syntax, states, initial)


def number_text(value: object) -> str:
    """Return a constant's exact number as text."""
    number: Exact = exact_number(value)
    return str(number).lower() if isinstance(number, bool) else str(number)
