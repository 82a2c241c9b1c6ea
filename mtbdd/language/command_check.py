"""Checking and folding the commands of modules."""

from __future__ import annotations

from mtbdd.language.definitions import Definitions
from mtbdd.language.errors import EvaluationError, suggestion
from mtbdd.language.model_syntax import Assignment, Command, Module, Update
from mtbdd.language.names import DeclaredNames
from mtbdd.language.syntax import Expression, Type
from mtbdd.language.types import TypeChecker


class CommandChecker:
    """Checks who writes what, and the types of guards, weights and assignments.

    Parameters
    ----------
    names : DeclaredNames
        The model's names.
    checker : TypeChecker
        Finds types; its collector takes the faults.
    definitions : Definitions
        What names stand for.
    """

    def __init__(self, names: DeclaredNames, checker: TypeChecker, definitions: Definitions) -> None:
        self._names = names
        self._checker = checker
        self._faults = checker.faults
        self._definitions = definitions
        self._folder = definitions.state_folder()

    def module(self, module: Module) -> Module:
        """Return a module with folded commands; what is at fault stays as it is."""
        commands = tuple(self._command(command, module) for command in module.commands)
        return Module(module.name, module.variables, commands, module.position)

    def _command(self, command: Command, module: Module) -> Command:
        guard = self._checked(command.guard, Type.BOOL, "a guard")
        updates = tuple(self._update(update, command, module) for update in command.updates)
        return Command(command.action, guard, updates, command.position)

    def _update(self, update: Update, command: Command, module: Module) -> Update:
        weight = update.weight
        if weight is not None:
            weight = self._checked(weight, Type.DOUBLE, "the weight of an update")
        written: set[str] = set()
        assignments = []
        for assignment in update.assignments:
            name = assignment.variable
            if name in written:
                self._faults.add(
                    assignment.position,
                    f"variable '{name}' is assigned twice in one update; keep one assignment",
                )
            written.add(name)
            assignments.append(self._assignment(assignment, command, module))
        return Update(weight, tuple(assignments), update.position)

    def _assignment(self, assignment: Assignment, command: Command, module: Module) -> Assignment:
        name, owners = assignment.variable, self._names.owners
        if name not in owners:
            if name in self._names.types:
                message = f"only variables can be assigned, got the constant or formula '{name}'"
            else:
                hint = suggestion(name, owners) or "; declare it in the module"
                message = f"unknown variable '{name}' in an assignment{hint}"
            self._faults.add(assignment.position, message)
            self._checker.check(assignment.expression)
            return assignment
        owner = owners[name]
        if owner is None:
            if command.action is not None:
                self._faults.add(
                    assignment.position,
                    f"the global variable '{name}' is assigned in a command with the action "
                    f"'{command.action}'; only commands without an action may, since several modules "
                    "could write at once",
                )
        elif owner != module.name:
            self._faults.add(
                assignment.position,
                f"module '{module.name}' assigns '{name}', a variable of module '{owner}'; "
                "only its own module may, or make it global",
            )
        wanted = self._names.types[name]
        if wanted is None:
            return assignment
        what = f"the value assigned to '{name}'"
        return Assignment(name, self._checked(assignment.expression, wanted, what), assignment.position)

    def _checked(self, expression: Expression, wanted: Type, what: str) -> Expression:
        if not self._checker.expect(expression, wanted, what) or not self._definitions.can_fold(expression):
            return expression
        try:
            return self._folder(expression)
        except EvaluationError as error:
            self._faults.extend(error.faults)
            return expression
