"""Declared names of a model: each declared once, what they are, and their definitions worked out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import NoReturn

from mtbdd.base.errors import constants_given
from mtbdd.base.records import Record
from mtbdd.language.errors import EvaluationError, Fault, FaultCollector, listed, shown_circle
from mtbdd.language.expression_parser import short_text
from mtbdd.language.reals import as_double
from mtbdd.language.scalars import Folder, Scalar
from mtbdd.language.syntax import (
    Constant,
    Expression,
    Formula,
    Label,
    LabelReference,
    Literal,
    ModelSyntax,
    Name,
    Position,
    Type,
    Variable,
)
from mtbdd.language.types import TypeChecker
from mtbdd.language.walk import expression_variables, introduced_actions, walk

# The order in which definitions that mention one another can be worked out.

_MOST_CYCLES = 20


def dependency_order(graph: Mapping[str, Iterable[str]]) -> tuple[list[str], list[list[str]]]:
    """Sort names so that each comes after those it depends on.

    `graph`: what each name depends on; names that are no key are passed over. Returns `order`: every key that
    is not on a cycle nor depends on one. `cycles`: the cycles met, each without its first name repeated; at
    most 20, since all of them together may be longer than the graph by far.

    Depth-first search with its own stack. Time: O(names + dependencies).
    """
    order: list[str] = []
    cycles: list[list[str]] = []
    state: dict[str, str] = {}  # "open" while below the search, then "good" or "bad"
    for root in graph:
        if root in state:
            continue
        path = [root]
        pending = [iter(graph[root])]
        state[root] = "open"
        bad = {root: False}
        while path:
            name = path[-1]
            for below in pending[-1]:
                if below not in graph:
                    continue
                known = state.get(below)
                if known is None:
                    state[below] = "open"
                    bad[below] = False
                    path.append(below)
                    pending.append(iter(graph[below]))
                    break
                if known == "open":
                    if len(cycles) < _MOST_CYCLES:
                        cycles.append(path[path.index(below) :])
                    bad[name] = True
                elif known == "bad":
                    bad[name] = True
            else:
                path.pop()
                pending.pop()
                state[name] = "bad" if bad[name] else "good"
                if bad[name]:
                    if path:
                        bad[path[-1]] = True
                else:
                    order.append(name)
    return order, cycles


BUILT_IN_LABELS = frozenset(("init", "deadlock"))


class DeclaredNames(Record, frozen=False):
    """The names that expressions may mention, and who may write the variables.

    `types`: of constants and variables; formulas have None until they are worked out. `owners`: the module of
    each variable; None for a global one. `actions`: the actions of all commands, and those that system blocks
    introduce by renaming.
    """

    types: dict[str, Type | None] = field(default_factory=dict)
    owners: dict[str, str | None] = field(default_factory=dict)
    actions: frozenset[str] = frozenset()


def report_repeated(items: Iterable[tuple[str, str, Position]], faults: FaultCollector) -> None:
    """Note a fault for each name after its first declaration.

    `items`: name, kind of declaration for messages, place. `faults`: takes the faults.
    """
    seen: dict[str, tuple[str, Position]] = {}
    for name, kind, position in items:
        if name in seen:
            first_kind, first = seen[name]
            faults.add(
                position,
                f"{kind} '{name}' is declared a second time, first as {first_kind} at "
                f"{first.line}:{first.column}; rename one of them",
            )
        else:
            seen[name] = (kind, position)


def check_names(syntax: ModelSyntax, faults: FaultCollector) -> DeclaredNames:
    """Gather a model's names and note those declared twice.

    `syntax`: the model. `faults`: takes the faults. Returns DeclaredNames: of a name declared twice the first
    declaration counts.
    """
    variables: list[tuple[Variable, str | None]] = [(v, None) for v in syntax.variables]
    variables += [(v, module.name) for module in syntax.modules for v in module.variables]
    named: list[tuple[str, str, Position]] = []
    named += [(c.name, "constant", c.position) for c in syntax.constants]
    named += [(f.name, "formula", f.position) for f in syntax.formulas]
    named += [(v.name, "variable", v.position) for v, _ in variables]
    report_repeated(named, faults)
    report_repeated([(m.name, "module", m.position) for m in syntax.modules], faults)
    report_repeated([(label.name, "label", label.position) for label in syntax.labels], faults)
    report_repeated(
        [(r.name, "reward structure", r.position) for r in syntax.rewards if r.name is not None], faults
    )
    for label in syntax.labels:
        if label.name in BUILT_IN_LABELS:
            faults.add(label.position, f'the label "{label.name}" is built in; choose another name')

    names = DeclaredNames(
        actions=introduced_actions(syntax.systems).union(
            command.action
            for module in syntax.modules
            for command in module.commands
            if command.action is not None
        )
    )
    for constant in syntax.constants:
        names.types.setdefault(constant.name, constant.type)
    for formula in syntax.formulas:
        names.types.setdefault(formula.name, None)
    for variable, owner in variables:
        names.types.setdefault(variable.name, Type.BOOL if variable.is_bool else Type.INT)
        names.owners.setdefault(variable.name, owner)
    return names


# Constants, formulas and labels, worked out in the order of their dependencies.

Definition = Constant | Formula | Label


def _quoted(label: str) -> str:
    """Return the key of a label among names: names have no quotes."""
    return f'"{label}"'


def _mentioned(expression: Expression) -> frozenset[str]:
    """Return the names and, in quotes, the labels in an expression."""
    nodes = list(walk(expression))
    names = {node.name for node in nodes if isinstance(node, Name)}
    return frozenset(names | {_quoted(node.name) for node in nodes if isinstance(node, LabelReference)})


class Definitions(Record, frozen=False):
    """Definitions of names.

    Attributes
    ----------
    types : dict of str to (Type or None)
        The type of every name, variables included; None after a fault.
    values : dict of str to bool, int or float
        The constants.
    formulas : dict of str to Expression
        Folded definitions.
    labels : dict of str to Expression
        Folded labels, in which only the built-in ones are left.
    late : set of str
        Formulas, and labels in quotes, that hold a built-in label: without value before the model is built.
    unresolved : set of str
        Names, and labels in quotes, that have no meaning, since they or what they mention are missing or
        at fault.
    missing : list of Constant
        Constants without a value, in the order of the text.
    """

    types: dict[str, Type | None]
    values: dict[str, Scalar] = field(default_factory=dict)
    formulas: dict[str, Expression] = field(default_factory=dict)
    labels: dict[str, Expression] = field(default_factory=dict)
    late: set[str] = field(default_factory=set)
    unresolved: set[str] = field(default_factory=set)
    missing: list[Constant] = field(default_factory=list)

    def folder(self) -> Folder:
        """Return the folder for these definitions."""
        return Folder(self.values, self.formulas, self.labels)

    def state_folder(self) -> Folder:
        """Return the folder for what the model is built from: no built-in label is known then."""
        return _StateFolder(self)

    def can_fold(self, expression: Expression) -> bool:
        """Return whether everything that an expression mentions is worked out."""
        return not self.unresolved or self.unresolved.isdisjoint(_mentioned(expression))


class _StateFolder(Folder):
    """Folds what the model is built from, and refuses labels that are known only afterwards."""

    def __init__(self, definitions: Definitions) -> None:
        super().__init__(definitions.values, definitions.formulas, definitions.labels)
        self._late = definitions.late

    def node(self, e: Expression) -> Expression:
        """Return a folded node that is no binary operator."""
        if isinstance(e, LabelReference):
            if e.name not in self.labels or _quoted(e.name) in self._late:
                self._refuse(e, _quoted(e.name))
        elif isinstance(e, Name) and e.name in self._late:
            self._refuse(e, f"'{e.name}'")
        return super().node(e)

    @staticmethod
    def _refuse(e: Expression, shown: str) -> NoReturn:
        built_in = " and ".join(_quoted(name) for name in sorted(BUILT_IN_LABELS))
        raise EvaluationError(
            [
                Fault(
                    e.position,
                    f"{shown} has no value while the model is built, since {built_in} speak of the states "
                    "found; use it in labels and properties only",
                )
            ]
        )


def evaluate_definitions(
    constants: Sequence[Constant],
    formulas: Sequence[Formula],
    labels: Sequence[Label],
    given: Mapping[str, Scalar],
    definitions: Definitions,
    faults: FaultCollector,
) -> None:
    """Work out constants, formulas and labels in any order of declaration.

    `constants`, `formulas`, `labels`: the declarations; of two with one name the first counts. `given`:
    values for constants without one, of their types. `definitions`: holds the types of constants and
    variables and those already resolved; takes the results. `faults`: takes circles, wrong types and constant
    parts without a value. Missing constants are left in `definitions.missing`, for the caller to report.

    Formulas and labels may mention one another; constants mention no labels. Time: O(size of the
    definitions).
    """
    by_name: dict[str, Definition] = {}
    for constant in constants:
        by_name.setdefault(constant.name, constant)
    for formula in formulas:
        by_name.setdefault(formula.name, formula)
    for label in labels:
        by_name.setdefault(_quoted(label.name), label)
    graph: dict[str, Iterable[str]] = {}
    for name, item in by_name.items():
        expression = _definition(item)
        graph[name] = () if expression is None else sorted(_mentioned(expression))
    order, cycles = dependency_order(graph)
    for cycle in cycles:
        circle = shown_circle(cycle)
        kinds = {type(by_name[name]) for name in cycle}
        kind = "constants" if kinds == {Constant} else "labels" if kinds == {Label} else "definitions"
        faults.add(by_name[cycle[0]].position, f"{kind} depend on one another: {circle}; break the circle")
    for name in by_name.keys() - set(order):
        definitions.unresolved.add(name)
        if isinstance(by_name[name], Formula):
            definitions.types[name] = None
    known = dict.fromkeys([*BUILT_IN_LABELS, *definitions.labels, *(label.name for label in labels)])
    checker = TypeChecker(definitions.types, faults, known)
    for name in order:
        item = by_name[name]
        if isinstance(item, Constant):
            _work_out_constant(item, given, definitions, faults)
        elif isinstance(item, Formula):
            _work_out_formula(item, checker, definitions)
        else:
            _work_out_label(item, checker, definitions)
    definitions.missing.sort(key=lambda c: (c.position.line, c.position.column))


def _definition(item: Definition) -> Expression | None:
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
                definitions.values[name] = as_double(number) if constant.type is Type.DOUBLE else number
                return
            variables = sorted(expression_variables(folded))
            names = listed([f"'{n}'" for n in variables])
            depends = f"which depends on the variable {names}; make it a formula"
            if not variables:
                depends = "which depends on the states of the model; make it a formula"
            faults.add(
                value.position,
                f"the value of the constant '{name}' must be constant, got '{short_text(value)}', {depends}",
            )
    definitions.unresolved.add(name)


def _work_out_formula(formula: Formula, checker: TypeChecker, definitions: Definitions) -> None:
    found = checker(formula.expression)
    definitions.types[formula.name] = found
    folded = None if found is None else _folded(formula.expression, checker.faults, definitions)
    if folded is None:
        definitions.unresolved.add(formula.name)
    else:
        definitions.formulas[formula.name] = folded
        if _is_late(folded):
            definitions.late.add(formula.name)


def _work_out_label(label: Label, checker: TypeChecker, definitions: Definitions) -> None:
    fits = checker.expect(label.expression, Type.BOOL, f'the label "{label.name}"')
    folded = _folded(label.expression, checker.faults, definitions) if fits else None
    if folded is None:
        definitions.unresolved.add(_quoted(label.name))
    else:
        definitions.labels[label.name] = folded
        if _is_late(folded):
            definitions.late.add(_quoted(label.name))


def _is_late(folded: Expression) -> bool:
    """Return whether a built-in label is left in a folded definition."""
    return any(isinstance(node, LabelReference) for node in walk(folded))


def _folded(expression: Expression, faults: FaultCollector, definitions: Definitions) -> Expression | None:
    """Fold a well-typed definition; None if that cannot be done."""
    if not definitions.can_fold(expression):
        return None
    try:
        return definitions.folder()(expression)
    except EvaluationError as error:
        faults.extend(error.faults)
        return None


def missing_message(missing: Sequence[Constant]) -> str:
    """Return the message for constants without a value: which, and how to give them."""
    names = listed([f"'{constant.name}' ({constant.type.value})" for constant in missing])
    example = constants_given(constant.name for constant in missing[:20])
    one = len(missing) == 1
    return (
        f"{'constant' if one else 'constants'} without a value: {names}; give {'it' if one else 'them'} with "
        f"{example}"
    )
