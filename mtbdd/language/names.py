"""Declared names of a model: each declared once, and what they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mtbdd.language.composition_walk import introduced_actions
from mtbdd.language.errors import FaultCollector
from mtbdd.language.model_syntax import ModelSyntax, Variable
from mtbdd.language.syntax import Position, Type

BUILT_IN_LABELS = frozenset(("init", "deadlock"))


@dataclass
class DeclaredNames:
    """The names that expressions may mention, and who may write the variables.

    Attributes
    ----------
    types : dict of str to (Type or None)
        Of constants and variables; formulas have None until they are worked out.
    owners : dict of str to (str or None)
        The module of each variable; None for a global one.
    actions : frozenset of str
        The actions of all commands, and those that system blocks introduce by renaming.
    """

    types: dict[str, Type | None] = field(default_factory=dict)
    owners: dict[str, str | None] = field(default_factory=dict)
    actions: frozenset[str] = frozenset()


def report_repeated(items: Iterable[tuple[str, str, Position]], faults: FaultCollector) -> None:
    """Note a fault for each name after its first declaration.

    Parameters
    ----------
    items : iterable of (str, str, Position)
        Name, kind of declaration for messages, place.
    faults : FaultCollector
        Takes the faults.
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

    Parameters
    ----------
    syntax : ModelSyntax
        The model.
    faults : FaultCollector
        Takes the faults.

    Returns
    -------
    DeclaredNames
        Of a name declared twice the first declaration counts.
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
