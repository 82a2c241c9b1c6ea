"""Module renaming: writing out `module b = a [old=new, ...] endmodule`.

A formula used in the copied module stands for its definition, in which names are replaced, too; so a
formula whose definition mentions a renamed name is expanded before the renaming.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mtbdd.language.errors import FaultCollector, suggestion
from mtbdd.language.module_parser import Renaming
from mtbdd.language.order import dependency_order
from mtbdd.language.syntax import (
    Assignment,
    Command,
    Expression,
    Formula,
    Module,
    Name,
    Update,
    Variable,
)
from mtbdd.language.walk import expression_variables, substitute

__all__ = ["write_out"]


def write_out(parts: Sequence[Module | Renaming], formulas: Sequence[Formula]) -> tuple[Module, ...]:
    """Carry out all renamings, also those of modules that are renamings themselves.

    Parameters
    ----------
    parts : sequence of Module or Renaming
        The modules in the order of the text.
    formulas : sequence of Formula
        The model's formulas.

    Returns
    -------
    tuple of Module
        In the order of `parts`.

    Raises
    ------
    LanguageError
        With all faults: an unknown module, a circle of renamings, a name renamed twice, a variable
        that keeps its name.
    """
    if not any(isinstance(part, Renaming) for part in parts):
        return tuple(part for part in parts if isinstance(part, Module))
    faults = FaultCollector()
    # Of two modules with one name the first counts here; the check of names reports the second.
    by_name: dict[str, Module | Renaming] = {}
    for part in parts:
        by_name.setdefault(part.name, part)
    renamings = [part for part in parts if isinstance(part, Renaming)]
    for renaming in renamings:
        _check_pairs(renaming, faults)
        if renaming.base not in by_name:
            hint = suggestion(renaming.base, by_name) or f"; known are {', '.join(sorted(by_name))}"
            faults.add(
                renaming.position,
                f"module '{renaming.name}' copies the unknown module '{renaming.base}'{hint}",
            )
    graph = {part.name: [part.base] for part in renamings}
    order, cycles = dependency_order(graph)
    for cycle in cycles:
        circle = " = ".join([*cycle, cycle[0]])
        faults.add(by_name[cycle[0]].position, f"modules copy one another: {circle}; write one of them out")
    faults.raise_if_any()

    expander = {formula.name: formula.expression for formula in formulas}
    modules = {part.name: part for part in by_name.values() if isinstance(part, Module)}
    for name in order:
        part = by_name[name]
        if isinstance(part, Renaming):
            modules[name] = _copy(modules[part.base], part, expander, faults)
    faults.raise_if_any()
    written: list[Module] = []
    for part in parts:
        if isinstance(part, Module):
            written.append(part)
        elif by_name[part.name] is part:
            written.append(modules[part.name])
        else:
            written.append(Module(part.name, (), (), part.position))
    return tuple(written)


def _check_pairs(renaming: Renaming, faults: FaultCollector) -> None:
    seen: set[str] = set()
    for old, new, position in renaming.pairs:
        if old in seen:
            faults.add(position, f"'{old}' is renamed twice in module '{renaming.name}'; keep one renaming")
        if (old in ("min", "max")) != (new in ("min", "max")):
            faults.add(position, f"the functions min and max can only replace each other, got {old}={new}")
        seen.add(old)


def _copy(
    base: Module, renaming: Renaming, formulas: Mapping[str, Expression], faults: FaultCollector
) -> Module:
    """Return a module's copy with names replaced."""
    new = {old: name for old, name, _ in renaming.pairs}
    kept = [
        variable.name for variable in base.variables if new.get(variable.name, variable.name) == variable.name
    ]
    if kept:
        names = ", ".join(f"'{name}'" for name in kept)
        more = ", ".join(f"{name}={name}_{renaming.name}" for name in kept)
        faults.add(
            renaming.position,
            f"module '{renaming.name}' copies '{base.name}' without renaming its variables: {names} would be "
            f"declared twice; add new names, like {more}",
        )
    rename = _Renamer(new, formulas, renaming)
    variables = tuple(
        Variable(
            new.get(v.name, v.name),
            None if v.low is None else rename(v.low),
            None if v.high is None else rename(v.high),
            None if v.initial is None else rename(v.initial),
            renaming.position,
        )
        for v in base.variables
    )
    commands = tuple(
        Command(
            None if c.action is None else new.get(c.action, c.action),
            rename(c.guard),
            tuple(
                Update(
                    None if u.weight is None else rename(u.weight),
                    tuple(
                        Assignment(new.get(a.variable, a.variable), rename(a.expression), a.position)
                        for a in u.assignments
                    ),
                    u.position,
                )
                for u in c.updates
            ),
            c.position,
        )
        for c in base.commands
    )
    return Module(renaming.name, variables, commands, renaming.position)


class _Renamer:
    """Renames names and functions in expressions, expanding formulas that mention a renamed one."""

    def __init__(
        self, new: Mapping[str, str], formulas: Mapping[str, Expression], renaming: Renaming
    ) -> None:
        position = renaming.position
        self.functions = {old: name for old, name in new.items()}
        self.mapping: dict[str, Expression] = {old: Name(position, name) for old, name in new.items()}
        graph = {name: expression_variables(definition) for name, definition in formulas.items()}
        # Formulas on a circle are left alone here; the check of names reports them.
        order, _ = dependency_order(graph)
        for name in order:
            if name not in new:
                definition = self(formulas[name])
                if definition is not formulas[name]:
                    self.mapping[name] = definition

    def __call__(self, expression: Expression) -> Expression:
        """Return the expression with all names replaced."""
        return substitute(expression, self.mapping, self.functions)
