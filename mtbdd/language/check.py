"""Checking a model and folding its constants: from `ModelSyntax` to `ResolvedModel`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from mtbdd.language.constants import Ignored, check_given
from mtbdd.language.errors import (
    EvaluationError,
    Fault,
    FaultCollector,
    LanguageError,
    listed,
    shown_circle,
    suggestion,
)
from mtbdd.language.expression_parser import short_text
from mtbdd.language.limits import current, raised
from mtbdd.language.names import (
    BUILT_IN_LABELS,
    DeclaredNames,
    Definitions,
    check_names,
    dependency_order,
    evaluate_definitions,
    missing_message,
    report_repeated,
)
from mtbdd.language.parser import paused_collector
from mtbdd.language.syntax import (
    ActionRenaming,
    Assignment,
    Command,
    Composition,
    Expression,
    Formula,
    Hiding,
    Label,
    Literal,
    ModelSyntax,
    Module,
    ModuleReference,
    Parallel,
    Position,
    ResolvedModel,
    ResolvedVariable,
    RewardItem,
    RewardStructure,
    SystemBlock,
    SystemReference,
    Type,
    Update,
    Variable,
)
from mtbdd.language.types import TypeChecker
from mtbdd.language.walk import expression_variables, walk_composition

# Checking system blocks: known names, and every module exactly once.


def resolve_system(
    syntax: ModelSyntax, actions: frozenset[str], faults: FaultCollector
) -> Composition | None:
    """Check the system blocks of a model and return the one that composes it.

    `syntax`: the model. `actions`: the actions of all commands, and those that system blocks introduce.
    `faults`: takes unknown modules, blocks and actions, blocks that refer to one another, and modules that
    the composition holds twice or not at all. Returns Composition or None: the block without a name, else the
    first one, references to others expanded; None without blocks or after a fault.
    """
    systems = syntax.systems
    if not systems:
        return None
    before = len(faults)
    report_repeated([(s.name, "system block", s.position) for s in systems if s.name is not None], faults)
    unnamed = [s for s in systems if s.name is None]
    for block in unnamed[1:]:
        faults.add(block.position, "expected one system block without a name, got a second one; name it")
    blocks: dict[str, SystemBlock] = {}
    for block in systems:
        if block.name is not None:
            blocks.setdefault(block.name, block)
    modules = frozenset(module.name for module in syntax.modules)
    for block in systems:
        for node in walk_composition(block.composition):
            _check_names(node, modules, blocks, actions, faults)
    graph = {
        name: [n.name for n in walk_composition(block.composition) if isinstance(n, SystemReference)]
        for name, block in blocks.items()
    }
    _, cycles = dependency_order(graph)
    for cycle in cycles:
        circle = shown_circle([f'"{name}"' for name in cycle])
        faults.add(
            blocks[cycle[0]].position, f"system blocks refer to one another: {circle}; break the circle"
        )
    if len(faults) > before:
        return None
    main = unnamed[0] if unnamed else systems[0]
    _check_single(main, blocks, faults)
    if len(faults) > before:
        return None
    expanded = _expanded(main.composition, blocks)
    _check_complete(main, expanded, syntax, faults)
    return expanded if len(faults) == before else None


def _check_names(
    node: Composition,
    modules: frozenset[str],
    blocks: dict[str, SystemBlock],
    actions: frozenset[str],
    faults: FaultCollector,
) -> None:
    """Note a fault for every name in a node that nothing is called by."""
    if isinstance(node, ModuleReference) and node.module not in modules:
        hint = suggestion(node.module, modules) or f"; known are {listed(sorted(modules))}"
        faults.add(node.position, f"unknown module '{node.module}' in a system block{hint}")
    elif isinstance(node, SystemReference) and node.name not in blocks:
        hint = suggestion(node.name, blocks) or '; name one with system "name" ... endsystem'
        faults.add(node.position, f'unknown system block "{node.name}"{hint}')
    mentioned: tuple[str, ...] = ()
    if isinstance(node, (Parallel, Hiding)):
        mentioned = node.actions
    elif isinstance(node, ActionRenaming):
        mentioned = tuple(old for old, _ in node.pairs)
    for action in mentioned:
        if action not in actions:
            hint = suggestion(action, actions) or "; no command has it"
            faults.add(node.position, f"unknown action '{action}' in a system block{hint}")


def _check_single(main: SystemBlock, blocks: dict[str, SystemBlock], faults: FaultCollector) -> None:
    """Note references to a block that is referred to already: its modules would occur twice."""
    seen: set[str] = set()
    pending = [main]
    while pending:
        for node in walk_composition(pending.pop().composition):
            if isinstance(node, SystemReference):
                if node.name in seen:
                    faults.add(
                        node.position,
                        f'the system block "{node.name}" is used twice, so that its modules occur twice; '
                        "copy the modules under other names",
                    )
                else:
                    seen.add(node.name)
                    pending.append(blocks[node.name])


def _expanded(node: Composition, blocks: dict[str, SystemBlock]) -> Composition:
    """Replace references to blocks by what they stand for."""
    if isinstance(node, SystemReference):
        return _expanded(blocks[node.name].composition, blocks)
    if isinstance(node, Parallel):
        operands = tuple(_expanded(operand, blocks) for operand in node.operands)
        return Parallel(node.position, node.operator, operands, node.actions)
    if isinstance(node, Hiding):
        return Hiding(node.position, _expanded(node.operand, blocks), node.actions)
    if isinstance(node, ActionRenaming):
        return ActionRenaming(node.position, _expanded(node.operand, blocks), node.pairs)
    return node


def _check_complete(
    main: SystemBlock, expanded: Composition, syntax: ModelSyntax, faults: FaultCollector
) -> None:
    """Note modules that a composition holds twice or not at all."""
    seen: set[str] = set()
    for node in walk_composition(expanded):
        if isinstance(node, ModuleReference):
            if node.module in seen:
                faults.add(
                    node.position,
                    f"module '{node.module}' occurs twice in the system block; copy it under another name",
                )
            seen.add(node.module)
    missing = [module.name for module in syntax.modules if module.name not in seen]
    if missing:
        names = listed([f"'{name}'" for name in missing])
        what = "module is" if len(missing) == 1 else "modules are"
        faults.add(main.position, f"{what} missing from the system block: {names}; add every module once")


# Checking and folding the commands of modules.


class CommandChecker:
    """Checks who writes what, and the types of guards, weights and assignments.

    `names`: the model's names. `checker`: finds types; its collector takes the faults. `definitions`: what
    names stand for.
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
            self._checker(assignment.expression)
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


def resolve(
    syntax: ModelSyntax, constants: Mapping[str, Any] | None = None, *, ignore_unknown: Ignored = False
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
            return _ModelResolver(syntax).resolve(constants or {}, ignore_unknown)
    except RecursionError:
        message = "expected expressions nested less deeply; split them with formulas"
        raise LanguageError([Fault(Position(syntax.file, 1, 1), message)]) from None


class _ModelResolver:
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
        evaluate_definitions(syntax.constants, syntax.formulas, syntax.labels, given, definitions, faults)
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
