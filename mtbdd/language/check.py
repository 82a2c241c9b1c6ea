"""Checking a model and folding its constants: from `ModelSyntax` to `ResolvedModel`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from mtbdd.language.collector import paused_collector
from mtbdd.language.command_check import CommandChecker
from mtbdd.language.composition_check import resolve_system
from mtbdd.language.constants import Ignored, check_given
from mtbdd.language.definitions import Definitions, missing_message, work_out
from mtbdd.language.errors import EvaluationError, Fault, FaultCollector, LanguageError, listed, suggestion
from mtbdd.language.limits import current, raised
from mtbdd.language.model_syntax import (
    Formula,
    Label,
    ModelSyntax,
    ResolvedModel,
    ResolvedVariable,
    RewardItem,
    RewardStructure,
    Variable,
)
from mtbdd.language.names import BUILT_IN_LABELS, check_names
from mtbdd.language.syntax import Expression, Literal, Position, Type
from mtbdd.language.text import short_text
from mtbdd.language.types import TypeChecker
from mtbdd.language.walk import expression_variables


def resolve(
    syntax: ModelSyntax,
    constants: Mapping[str, Any] | None = None,
    *,
    ignore_unknown: Ignored = False,
) -> ResolvedModel:
    """Check names and types of a model, and fold its constants and formulas.

    Parameters
    ----------
    syntax : ModelSyntax
        From `mtbdd.language.parser.parse_model`.
    constants : mapping of str to bool, int or float, optional
        Values for the constants that have none in the text; an int will do for a double.
    ignore_unknown : bool or collection of str
        Pass over given constants that the model does not declare, all or those of these names; they may
        belong to properties.

    Returns
    -------
    ResolvedModel
        Expressions hold literals, variables and operators; labels and formulas are expanded, only the
        labels "init" and "deadlock" may be left inside labels.

    Raises
    ------
    LanguageError
        With all faults of names, types and values together.

    Notes
    -----
    Time: O(size of the model with formulas written out).
    """
    try:
        with paused_collector():
            return _Resolver(syntax).resolve(constants or {}, ignore_unknown)
    except RecursionError:
        message = "expected expressions nested less deeply; split them with formulas"
        raise LanguageError([Fault(Position(syntax.file, 1, 1), message)]) from None


class _Resolver:
    """The steps of `resolve`, and what they share."""

    def __init__(self, syntax: ModelSyntax) -> None:
        self.syntax = syntax
        self.faults = FaultCollector()
        self.names = check_names(syntax, self.faults)
        self.definitions = Definitions(self.names.types)
        labels = dict.fromkeys([*BUILT_IN_LABELS, *(label.name for label in syntax.labels)])
        self.checker = TypeChecker(self.definitions.types, self.faults, labels)
        self.folder = self.definitions.state_folder()

    def resolve(self, constants: Mapping[str, Any], ignore_unknown: Ignored) -> ResolvedModel:
        syntax, faults, definitions = self.syntax, self.faults, self.definitions
        given = check_given(constants, syntax.constants, (), syntax.file, faults, ignore_unknown)
        work_out(syntax.constants, syntax.formulas, syntax.labels, given, definitions, faults)
        # A constant given with a wrong value is reported already.
        missing = [constant for constant in definitions.missing if constant.name not in constants]
        if missing:
            faults.add(missing[0].position, missing_message(missing))
        variables = [self._variable(v, None) for v in syntax.variables]
        commands = CommandChecker(self.names, self.checker, definitions)
        modules = []
        for module in syntax.modules:
            variables += [self._variable(v, module.name) for v in module.variables]
            modules.append(commands.module(module))
        self._check_bits([v for v in variables if v is not None])
        rewards = tuple(self._rewards(structure) for structure in syntax.rewards)
        initial = None
        if syntax.initial is not None:
            what = "the predicate of init ... endinit"
            initial = self._folded(syntax.initial, Type.BOOL, what)
        system = resolve_system(syntax, self.names.actions, faults)
        faults.raise_if_any()
        return ResolvedModel(
            file=syntax.file,
            type=syntax.type,
            constants={c.name: definitions.values[c.name] for c in syntax.constants},
            variables=tuple(v for v in variables if v is not None),
            modules=tuple(modules),
            labels=tuple(
                Label(label.name, definitions.labels[label.name], label.position) for label in syntax.labels
            ),
            rewards=rewards,
            formulas=tuple(
                Formula(f.name, definitions.formulas[f.name], f.position) for f in syntax.formulas
            ),
            initial=initial,
            system=system,
        )

    def _folded(self, expression: Expression, wanted: Type, what: str, advice: str = "") -> Expression:
        """Check the type of an expression and fold it; after a fault it stays as it is."""
        if not self.checker.expect(expression, wanted, what, advice) or not self.definitions.can_fold(
            expression
        ):
            return expression
        try:
            return self.folder(expression)
        except EvaluationError as error:
            self.faults.extend(error.faults)
            return expression

    # ------------------------------------------------------------------ variables

    def _variable(self, variable: Variable, module: str | None) -> ResolvedVariable | None:
        """Return a variable with bounds and initial value as numbers, None after a fault."""
        name = variable.name
        if variable.initial is not None and self.syntax.initial is not None:
            self.faults.add(
                variable.initial.position,
                f"variable '{name}' has an initial value beside init ... endinit; keep one of the two",
            )
        if variable.low is None or variable.high is None:
            initial = self._constant(variable.initial, Type.BOOL, f"the initial value of '{name}'", 0)
            if initial is None:
                return None
            return ResolvedVariable(name, 0, 1, int(initial), True, module, variable.position)
        low = self._constant(variable.low, Type.INT, f"the lower bound of '{name}'")
        high = self._constant(variable.high, Type.INT, f"the upper bound of '{name}'")
        initial = self._constant(variable.initial, Type.INT, f"the initial value of '{name}'", low)
        if low is None or high is None:
            return None
        if low > high:
            self.faults.add(
                variable.position,
                f"variable '{name}' has the empty range [{low}..{high}]; the upper bound is too low",
            )
            return None
        if initial is None:
            return None
        if not low <= initial <= high:
            place = variable.position if variable.initial is None else variable.initial.position
            self.faults.add(
                place, f"the initial value of '{name}' must lie in its range [{low}..{high}], got {initial}"
            )
            return None
        return ResolvedVariable(name, low, high, initial, False, module, variable.position)

    def _check_bits(self, variables: Sequence[ResolvedVariable]) -> None:
        """Note the first variable that does not fit the limit on all variables' bits."""
        sizes = [(variable.high - variable.low).bit_length() for variable in variables]
        most = current().bits
        for variable, bits in zip(variables, accumulate(sizes), strict=True):
            if bits > most:
                self.faults.add(
                    variable.position,
                    f"expected variables of at most {most} bits together, got more with '{variable.name}' of "
                    f"the range [{variable.low}..{variable.high}]; give variables smaller ranges, or "
                    f"{raised('bits', sum(sizes))}",
                )
                return

    def _constant(
        self, expression: Expression | None, wanted: Type, what: str, default: int | None = None
    ) -> int | None:
        """Return the value of an expression that must be constant, None after a fault."""
        if expression is None:
            return default
        before = len(self.faults)
        folded = self._folded(expression, wanted, what)
        if len(self.faults) > before or not self.definitions.can_fold(expression):
            return None
        if isinstance(folded, Literal):
            return int(folded.value)
        names = listed([f"'{n}'" for n in sorted(expression_variables(folded))])
        self.faults.add(
            expression.position,
            f"{what} must be constant, got '{short_text(expression)}', which depends on the variable {names}",
        )
        return None

    # ------------------------------------------------------------------ rewards

    def _rewards(self, structure: RewardStructure) -> RewardStructure:
        items = []
        for item in structure.items:
            if item.action is not None and item.action not in self.names.actions:
                hint = suggestion(item.action, self.names.actions) or "; no command has it"
                self.faults.add(item.position, f"unknown action '{item.action}' in a reward{hint}")
            guard = self._folded(item.guard, Type.BOOL, "the guard of a reward")
            value = self._folded(item.value, Type.DOUBLE, "the value of a reward")
            items.append(RewardItem(item.is_transition, item.action, guard, value, item.position))
        return RewardStructure(structure.name, tuple(items), structure.position)
