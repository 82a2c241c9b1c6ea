"""Checking properties against a model, and folding their constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from hybrid.properties.registry import PropertyTypeChecker
from hybrid.properties.tree import (
    Cumulative,
    Divisor,
    Elapsed,
    Instantaneous,
    Probability,
    Properties,
    Property,
    Reward,
    RewardBound,
    SteadyState,
    TimeBound,
)
from mtbdd.base.records import Record
from mtbdd.language.constants import check_given, type_of_given
from mtbdd.language.errors import EvaluationError, Fault, FaultCollector, LanguageError, listed, shown_circle
from mtbdd.language.names import (
    BUILT_IN_LABELS,
    Definitions,
    dependency_order,
    evaluate_definitions,
    missing_message,
    report_repeated,
)
from mtbdd.language.reals import doubles_around
from mtbdd.language.scalars import Folder, Scalar
from mtbdd.language.syntax import (
    ELAPSED,
    Constant,
    Expression,
    LabelReference,
    Literal,
    ModelType,
    Position,
    ResolvedModel,
    Type,
)
from mtbdd.language.types import TypeChecker, type_of_value
from mtbdd.language.walk import expression_variables, walk

# Folding of properties: bounds and times become numbers, reward structures get their place.

LEAST_DISCOUNT = 2.0**-50
"""The least discount: times it no entry of a matrix, which is a normal double, underflows to zero."""


class PropertyFolder(Folder):
    """Folds well-typed properties and notes bounds that make no sense.

    `values`, `definitions`, `labels`: as for `mtbdd.language.scalars.Folder`; named properties are labels.
    `structures`: the names of the model's reward structures. `faults`: takes the faults. `warnings`: how
    questions were understood, each once: on a chain `Pmax` is `P`.
    """

    def __init__(
        self,
        values: Mapping[str, Scalar],
        definitions: Mapping[str, Expression],
        labels: Mapping[str, Expression],
        structures: Sequence[str | None],
        kind: ModelType,
        faults: FaultCollector,
    ) -> None:
        super().__init__(values, definitions, labels)
        self._structures, self._kind = structures, kind
        self.warnings: dict[str, None] = {}
        self._faults = faults

    def fold(self, formula: Expression) -> Expression | None:
        """Return the folded formula, None after a fault."""
        before = len(self._faults)
        try:
            folded = self(formula)
        except EvaluationError as error:
            self._faults.extend(error.faults)
            return None
        return folded if len(self._faults) == before else None

    def node(self, e: Expression) -> Expression:
        """Return a folded node that is no binary operator."""
        node = super().node(e)
        if isinstance(node, (Probability, Reward, SteadyState)):
            node = self._of_a_chain(node)
        if isinstance(node, (Probability, SteadyState)):
            self._number(node.threshold, e, "a bound on a probability", 1.0)
        elif isinstance(node, Reward):
            is_time = node.letter == "T"
            what = "a bound on an expected time" if is_time else "a bound on a reward"
            self._number(node.threshold, e, what, None, signed=not is_time)
            return self._discounted(replace(node, index=self._index(node)))
        elif isinstance(node, RewardBound):
            most = self._number(node.most, e, "a bound on a reward", None)
            if most == 0 and node.is_strict:
                self._faults.add(node.position, "a bound on a reward must leave something, got <0; use <=0")
            least = self._number(node.least, e, "a bound on a reward", None)
            if least is not None and most is not None and least > most:
                message = f"bounds on a reward must leave something, got [{least},{most}]; swap the ends"
                self._faults.add(node.position, message)
            return replace(node, index=self._index(node))
        elif isinstance(node, Divisor):
            return replace(node, index=self._index(node))
        elif isinstance(node, TimeBound):
            self._interval(node, e)
        elif isinstance(node, (Cumulative, Instantaneous)):
            self._number(node.time, e, "a time", None)
        return node

    def _of_a_chain(self, node: Probability | Reward | SteadyState) -> Probability | Reward | SteadyState:
        """Return an operator without its optimum if the model has no choices."""
        if node.optimum is None or self._kind is ModelType.MDP:
            return node
        letter = node.letter
        self.warnings[f"{letter}{node.optimum} is {letter} here: a {self._kind.value} has no choices"] = None
        return replace(node, optimum=None)

    def _number(
        self, e: Expression | None, within: Expression, what: str, most: float | None, signed: bool = False
    ) -> float | None:
        """Return the value of a constant expression, from 0 unless `signed`; None after a fault.

        Faults are reported for the operator `within`: a formula may be expanded in the expression itself.
        """
        if e is None:
            return None
        place = within.position
        if not isinstance(e, Literal):
            names = listed([f"'{n}'" for n in sorted(expression_variables(e))])
            on = f"which depends on the variable {names}" if names else "which is none"
            self._faults.add(place, f"{what} must be a constant, got an expression {on}")
            return None
        value = e.value
        if (value < 0 and not signed) or (most is not None and value > most):
            expected = "at least 0" if most is None else "between 0 and 1"
            self._faults.add(place, f"{what} must be {expected}, got {value}")
            return None
        return value

    def _discounted(self, node: Reward) -> Reward:
        """Return a reward with its discount, wherever it was written, in its place."""
        if isinstance(node.target, Cumulative) and node.target.discount is not None:
            target = replace(node.target, discount=None)
            node = replace(node, discount=node.target.discount, target=target)
        value = self._number(node.discount, node, "a discount", 1.0)
        if value is not None and not (value > 0 and doubles_around(value)[1] < 1):
            self._faults.add(
                node.position, f"a discount must be between 0 and 1, both excluded, got {value}; leave 1 out"
            )
        elif value is not None and doubles_around(value)[0] < LEAST_DISCOUNT:
            self._faults.add(
                node.position,
                f"a discount must be at least {LEAST_DISCOUNT!r}, got {value}: no double would show more "
                "than the first step; write C<=1",
            )
        return node

    def _interval(self, bound: TimeBound, within: Expression) -> None:
        what = "a bound on time"
        lower = self._number(bound.lower, within, what, None)
        upper = lower if bound.upper is bound.lower else self._number(bound.upper, within, what, None)
        if upper is not None and bound.lower is None and bound.upper_strict and upper == 0:
            self._faults.add(bound.position, "a bound on time must leave some time, got <0; use <=0")
        if lower is not None and upper is not None and lower > upper:
            self._faults.add(
                bound.position, f"a time interval must not be empty, got [{lower},{upper}]; swap its ends"
            )

    def _index(self, node: Reward | RewardBound | Divisor) -> int:
        """Return the place of the reward structure among the model's, from 0."""
        structure = node.structure
        if structure is None:
            return 0
        if isinstance(structure, Elapsed):
            return ELAPSED
        if isinstance(structure, str):
            return self._structures.index(structure)
        if not isinstance(structure, Literal):
            self._faults.add(structure.position, "the number of a reward structure must be a constant")
            return 0
        number = int(structure.value)
        if not 1 <= number <= len(self._structures):
            count = len(self._structures)
            self._faults.add(
                structure.position,
                f"the number of a reward structure must be from 1 to {count}, got {number}",
            )
        return number - 1


_Declared = list[tuple[str, str, Position]]  # names, kinds, places


def resolve_properties(
    properties: Properties,
    model: ResolvedModel,
    constants: Mapping[str, Any] | None = None,
    *,
    keep_faults: bool = False,
) -> Properties:
    """Check names and types of properties, and fold constants, formulas, labels and references.

    Parameters
    ----------
    properties : Properties
        From `hybrid.properties.parser.parse_properties`.
    model : ResolvedModel
        The model that they speak of.
    constants : mapping of str to bool, int or float, optional
        Values for the constants declared here without one; the model's own are passed over.  A name that is
        mentioned and declared nowhere is declared by its value.
    keep_faults : bool
        Leave a faulty property in the result, unresolved, with its `error` set, instead of raising, so that
        the others can be answered.  Faults of declarations, which names of properties are not, are raised
        all the same.

    Returns
    -------
    Properties
        Formulas hold literals, variables, operators and the labels "init" and "deadlock"; all other labels
        and named properties are expanded (a name of both is the label's); bounds and times are literals;
        `Reward.index` is set. On a chain `Pmax` and its like lose their optimum, with a warning each.

    Raises
    ------
    LanguageError
        With all faults of declarations and, unless kept, of properties.  A missing constant is a fault of the
        properties that need it.

    Notes
    -----
    Time: O(size of the model's formulas and labels and of the properties with them written out).
    """
    try:
        given = constants or {}
        return _PropertyResolver(_declared_by(given, properties, model), model).resolve(given, keep_faults)
    except RecursionError:
        message = "expected properties nested less deeply; split them with labels and formulas"
        raise LanguageError([Fault(Position(properties.file, 1, 1), message)]) from None


def _declared_by(given: Mapping[str, Any], properties: Properties, model: ResolvedModel) -> Properties:
    """Return properties with the constants that given values declare: names that nothing else declares."""
    names = given.keys() & properties.undeclared()
    names -= {*model.constants, *(f.name for f in model.formulas), *(v.name for v in model.variables)}
    place = Position(properties.file, 1, 1)
    added = [
        Constant(name, kind, None, place)
        for name, value in given.items()
        if name in names and (kind := type_of_given(value)) is not None
    ]
    return replace(properties, constants=(*properties.constants, *added)) if added else properties


def repeated_names(properties: Properties) -> FaultCollector:
    """Return the faults of names of labels and properties that are taken in their file already."""
    own_labels, named = _labels_and_names(properties)
    faults = FaultCollector()
    report_repeated([*own_labels, *named], faults)
    return faults


def with_repeated_names(properties: Properties) -> Properties:
    """Return properties, those whose name is taken in their file with that among their faults."""
    faults = {fault.position: fault for fault in repeated_names(properties)}
    told = tuple(_with_fault(p, faults.get(p.position)) for p in properties.properties)
    return replace(properties, properties=told)


def _labels_and_names(properties: Properties) -> tuple[_Declared, _Declared]:
    """Return the labels and the properties with names, as `report_repeated` takes them."""
    labels = [(label.name, "label", label.position) for label in properties.labels]
    return labels, [(p.name, "property", p.position) for p in properties.properties if p.name is not None]


def _with_fault(item: Property, fault: Fault | None) -> Property:
    """Return a property with one fault more, if there is one."""
    if fault is None:
        return item
    return replace(item, error=LanguageError([fault, *(item.error.faults if item.error else ())]))


class _Outcome(Record, frozen=False):
    """The outcome of one property: its type and its folded formula, or the faults."""

    property: Property
    type: Type | None = None
    faults: tuple[Fault, ...] = ()


class _PropertyResolver:
    """The steps of `resolve_properties`, and what they share."""

    def __init__(self, properties: Properties, model: ResolvedModel) -> None:
        self.properties = properties
        self.model = model
        self.faults = FaultCollector()
        self.misnamed: dict[Position, Fault] = {}
        self.definitions = _model_definitions(model)
        self.label_names = dict.fromkeys(
            [*BUILT_IN_LABELS, *self.definitions.labels, *(label.name for label in properties.labels)]
        )

    def resolve(self, constants: Mapping[str, Any], keep_faults: bool) -> Properties:
        properties, faults = self.properties, self.faults
        self._declare(constants)
        faults.raise_if_any()
        outcomes = self._properties()
        if not keep_faults:
            for outcome in outcomes:
                faults.extend(outcome.faults)
            faults.raise_if_any()
        resolved = tuple(
            replace(o.property, error=LanguageError(o.faults)) if o.faults else o.property for o in outcomes
        )
        values = {
            c.name: self.definitions.values[c.name]
            for c in properties.constants
            if c.name in self.definitions.values
        }
        return Properties(properties.file, (), (), (), resolved, values)

    # ------------------------------------------------------------------ declarations

    def _declare(self, constants: Mapping[str, Any]) -> None:
        """Check the names declared here and work out what they stand for."""
        properties, model, faults = self.properties, self.model, self.faults
        model_place = Position(model.file, 1, 1)
        known = [(name, "constant", model_place) for name in model.constants]
        known += [(f.name, "formula", f.position) for f in model.formulas]
        known += [(v.name, "variable", v.position) for v in model.variables]
        own = [(c.name, "constant", c.position) for c in properties.constants]
        own += [(f.name, "formula", f.position) for f in properties.formulas]
        report_repeated(own, faults)
        _report_clashes(known, own, model.file, faults)
        known_labels = [(label.name, "label", label.position) for label in model.labels]
        known_labels += [(name, "built-in label", model_place) for name in BUILT_IN_LABELS]
        own_labels, named = _labels_and_names(properties)
        labelled = repeated_names(properties)
        # A property may be named like a label of the model, as in published files: formulas mean the label.
        own_labels += [entry for entry in named if entry[0] in BUILT_IN_LABELS]
        _report_clashes(known_labels, own_labels, model.file, labelled)
        # The name of a property is at fault alone, and hides no other property.
        places = {p.position for p in properties.properties}
        for fault in labelled:
            if fault.position in places:
                self.misnamed[fault.position] = fault
            else:
                faults.add(fault.position, fault.message)
        given = check_given(constants, properties.constants, model.constants, properties.file, faults)
        definitions = self.definitions
        for constant in properties.constants:
            definitions.types.setdefault(constant.name, constant.type)
        for formula in properties.formulas:
            definitions.types.setdefault(formula.name, None)
        evaluate_definitions(
            properties.constants, properties.formulas, properties.labels, given, definitions, faults
        )

    # ------------------------------------------------------------------ properties

    def _properties(self) -> list[_Outcome]:
        """Resolve the properties, each after those that it mentions."""
        items = [_with_fault(p, self.misnamed.get(p.position)) for p in self.properties.properties]
        well_named = {p.name for p in items if p.name is not None and p.position not in self.misnamed}
        named = well_named - {label.name for label in self.model.labels}
        keys = [
            p.name if p.name in named and p.position not in self.misnamed else f"#{i}"
            for i, p in enumerate(items)
        ]
        by_key = dict(zip(keys, items, strict=True))
        mentions = {key: [n for n in _labels_of(p.formula) if n in named] for key, p in by_key.items()}
        order, cycles = dependency_order(mentions)
        outcomes: dict[str, _Outcome] = {}
        formulas: dict[str, Expression] = {}
        for cycle in cycles:
            circle = shown_circle([f'"{name}"' for name in cycle])
            fault = Fault(
                by_key[cycle[0]].position, f"properties mention one another: {circle}; break the circle"
            )
            for name in cycle:
                outcomes.setdefault(name, _Outcome(by_key[name], faults=(fault,)))
        types: dict[str, Type | None] = dict.fromkeys(named)
        for key in order:
            outcome = outcomes[key] = self._property(by_key[key], types, formulas, outcomes)
            types[key] = outcome.type
            if not outcome.faults:
                formulas[key] = outcome.property.formula
        for key, item in by_key.items():
            # A property without an outcome mentions one on a circle, directly or not, and has its faults.
            below = next(
                (outcomes[n].faults for n in mentions[key] if n in outcomes and outcomes[n].faults), ()
            )
            outcomes.setdefault(key, _Outcome(item, faults=below))
        return [outcomes[key] for key in keys]

    def _property(
        self,
        item: Property,
        types: Mapping[str, Type | None],
        formulas: Mapping[str, Expression],
        outcomes: Mapping[str, _Outcome],
    ) -> _Outcome:
        """Check and fold one property."""
        if item.error is not None:
            return _Outcome(item, None, item.error.faults)
        model, faults = self.model, FaultCollector()
        structures = tuple(structure.name for structure in model.rewards)
        checker = PropertyTypeChecker(
            self.definitions.types, faults, self.label_names, types, model.type, structures
        )
        found = checker(item.formula)
        for name in _labels_of(item.formula):
            if name in outcomes:
                faults.extend(outcomes[name].faults)
        missing = self._missing(item.formula)
        if missing:
            faults.add(item.position, missing_message(missing))
        if not len(faults):
            labels = {**self.definitions.labels, **formulas}
            folder = PropertyFolder(
                self.definitions.values, self.definitions.formulas, labels, structures, model.type, faults
            )
            folded = folder.fold(item.formula)
            if folded is not None:
                below = [outcomes[n].property.warnings for n in _labels_of(item.formula) if n in outcomes]
                warnings = dict.fromkeys([*chain.from_iterable(below), *folder.warnings])
                item = replace(item, formula=folded, warnings=tuple(warnings))
        return _Outcome(item, found, tuple(faults))

    def _missing(self, formula: Expression) -> list[Constant]:
        """Return the constants without a value that a formula needs, also through labels and formulas."""
        if not self.definitions.missing:
            return []
        declared: dict[str, Expression] = {f.name: f.expression for f in self.properties.formulas}
        declared |= {c.name: c.value for c in self.properties.constants if c.value is not None}
        labels = {label.name: label.expression for label in self.properties.labels}
        needed: set[str] = set()
        pending: list[Expression] = [formula]
        while pending:
            expression = pending.pop()
            for node in _labels_of(expression):
                if node in labels:
                    pending.append(labels.pop(node))
            for name in expression_variables(expression) - needed:
                needed.add(name)
                if name in declared:
                    pending.append(declared[name])
        return [constant for constant in self.definitions.missing if constant.name in needed]


def _labels_of(expression: Expression) -> list[str]:
    return [node.name for node in walk(expression) if isinstance(node, LabelReference)]


def _model_definitions(model: ResolvedModel) -> Definitions:
    """Return what the names of a model stand for."""
    types: dict[str, Type | None] = {v.name: Type.BOOL if v.is_bool else Type.INT for v in model.variables}
    # Formulas are resolved, so that they mention variables and built-in labels only.
    checker = TypeChecker(dict(types), FaultCollector(), dict.fromkeys(BUILT_IN_LABELS))
    types |= {name: type_of_value(value) for name, value in model.constants.items()}
    types |= {formula.name: checker(formula.expression) for formula in model.formulas}
    formulas = {formula.name: formula.expression for formula in model.formulas}
    labels = {label.name: label.expression for label in model.labels}
    return Definitions(types, dict(model.constants), formulas, labels)


def _report_clashes(known: _Declared, own: _Declared, file: str, faults: FaultCollector) -> None:
    """Note names of the properties file that are declared in the model, too."""
    kinds = {name: kind for name, kind, _ in known}
    for name, kind, position in own:
        if name in kinds:
            faults.add(
                position,
                f"{kind} '{name}' is declared in the model {file}, too, as {kinds[name]}; rename it here",
            )
