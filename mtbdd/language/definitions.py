"""Constants and formulas, worked out in the order of their dependencies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mtbdd.language.errors import EvaluationError, FaultCollector
from mtbdd.language.fold import Folder
from mtbdd.language.order import dependency_order
from mtbdd.language.scalars import Scalar
from mtbdd.language.syntax import Constant, Expression, Formula, Literal, Type
from mtbdd.language.text import to_text
from mtbdd.language.types import TypeChecker
from mtbdd.language.walk import expression_variables

__all__ = ["Definitions", "missing_message", "work_out"]


@dataclass
class Definitions:
    """What names stand for.

    Attributes
    ----------
    types : dict of str to (Type or None)
        The type of every name, variables included; None after a fault.
    values : dict of str to bool, int or float
        The constants.
    formulas : dict of str to Expression
        Folded definitions.
    unresolved : set of str
        Names that have neither, since they or what they mention are missing or at fault.
    missing : list of Constant
        Constants without a value, in the order of the text.
    """

    types: dict[str, Type | None]
    values: dict[str, Scalar] = field(default_factory=dict)
    formulas: dict[str, Expression] = field(default_factory=dict)
    unresolved: set[str] = field(default_factory=set)
    missing: list[Constant] = field(default_factory=list)

    def folder(self, labels: Mapping[str, Expression] | None = None) -> Folder:
        """Return the folder for these definitions."""
        return Folder(self.values, self.formulas, labels)

    def can_fold(self, expression: Expression) -> bool:
        """Return whether everything that an expression mentions is worked out."""
        return not self.unresolved or self.unresolved.isdisjoint(expression_variables(expression))


def work_out(
    constants: Sequence[Constant],
    formulas: Sequence[Formula],
    given: Mapping[str, Scalar],
    definitions: Definitions,
    faults: FaultCollector,
) -> None:
    """Work out constants and formulas in any order of declaration.

    Parameters
    ----------
    constants, formulas : sequence
        The declarations; of two with one name the first counts.
    given : mapping of str to bool, int or float
        Values for constants without one, of their types.
    definitions : Definitions
        Holds the types of constants and variables and whatever is known already; takes the results.
    faults : FaultCollector
        Takes circles, wrong types and constant parts without a value.  Missing constants are left in
        `definitions.missing`, for the caller to report.

    Notes
    -----
    Time: O(size of the definitions).
    """
    by_name: dict[str, Constant | Formula] = {}
    items: list[Constant | Formula] = [*constants, *formulas]
    for item in items:
        by_name.setdefault(item.name, item)
    graph: dict[str, Iterable[str]] = {}
    for name, item in by_name.items():
        expression = _definition(item)
        graph[name] = () if expression is None else sorted(expression_variables(expression))
    order, cycles = dependency_order(graph)
    for cycle in cycles:
        circle = " -> ".join([*cycle, cycle[0]])
        kind = "constants" if all(isinstance(by_name[name], Constant) for name in cycle) else "definitions"
        faults.add(by_name[cycle[0]].position, f"{kind} depend on one another: {circle}; break the circle")
    for name in by_name.keys() - set(order):
        definitions.unresolved.add(name)
        if isinstance(by_name[name], Formula):
            definitions.types[name] = None
    for name in order:
        item = by_name[name]
        if isinstance(item, Constant):
            _work_out_constant(item, given, definitions, faults)
        else:
            _work_out_formula(item, definitions, faults)
    definitions.missing.sort(key=lambda c: (c.position.line, c.position.column))


def _definition(item: Constant | Formula) -> Expression | None:
    return item.value if isinstance(item, Constant) else item.expression


def _work_out_constant(
    constant: Constant, given: Mapping[str, Scalar], definitions: Definitions, faults: FaultCollector
) -> None:
    name, value = constant.name, constant.value
    if value is None:
        if name in given:
            definitions.values[name] = given[name]
        else:
            definitions.missing.append(constant)
            definitions.unresolved.add(name)
        return
    checker = TypeChecker(definitions.types, faults)
    if checker.expect(value, constant.type, f"the value of the constant '{name}'") and definitions.can_fold(
        value
    ):
        try:
            folded = definitions.folder()(value)
        except EvaluationError as error:
            faults.extend(error.faults)
        else:
            if isinstance(folded, Literal):
                number = folded.value
                definitions.values[name] = float(number) if constant.type is Type.DOUBLE else number
                return
            names = ", ".join(f"'{n}'" for n in sorted(expression_variables(folded)))
            faults.add(
                value.position,
                f"the value of the constant '{name}' must be constant, got '{to_text(value)}', which depends "
                f"on the variable {names}; make it a formula",
            )
    definitions.unresolved.add(name)


def _work_out_formula(formula: Formula, definitions: Definitions, faults: FaultCollector) -> None:
    name, expression = formula.name, formula.expression
    found = TypeChecker(definitions.types, faults).check(expression)
    definitions.types[name] = found
    if found is not None and definitions.can_fold(expression):
        try:
            definitions.formulas[name] = definitions.folder()(expression)
            return
        except EvaluationError as error:
            faults.extend(error.faults)
    definitions.unresolved.add(name)


def missing_message(missing: Sequence[Constant]) -> str:
    """Return the message for constants without a value: which, and how to give them."""
    names = ", ".join(f"'{constant.name}' ({constant.type.value})" for constant in missing)
    example = ",".join(f"{constant.name}=VALUE" for constant in missing)
    one = len(missing) == 1
    return (
        f"{'constant' if one else 'constants'} without a value: {names}; give {'it' if one else 'them'} with "
        f"--const {example}"
    )
