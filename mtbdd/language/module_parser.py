"""Modules of the PRISM language: variables, commands and their updates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

from mtbdd.base.records import Record
from mtbdd.language.errors import (
    FaultCollector,
    LanguageError,
    SyntaxFaultError,
    listed,
    shown_circle,
    suggestion,
)
from mtbdd.language.expression_parser import ExpressionParser
from mtbdd.language.limits import current, raised
from mtbdd.language.names import dependency_order
from mtbdd.language.syntax import (
    Assignment,
    Command,
    Expression,
    Formula,
    Module,
    Name,
    Position,
    Update,
    Variable,
)
from mtbdd.language.walk import expression_variables, substitute


class Renaming(Record):
    """`module name = base [old=new, ...] endmodule`, as written."""

    name: str
    base: str
    pairs: tuple[tuple[str, str, Position], ...]
    position: Position


class ModuleParser(ExpressionParser):
    """Reads modules; the parser of whole models is built on it."""

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text, file)
        self._counts: dict[str, int] = {}

    def module(self) -> Module | Renaming:
        """Read a module or a renaming, the word `module` being next."""
        position = self.position()
        self.index += 1
        name = self.name("the module's name after 'module'")
        if self.take("="):
            return self._renaming(name, position)
        variables = []
        while self.peek() == ":" and not self.at("["):
            variables.append(self.counted_variable())
        if self.at("invariant"):
            self.fail("invariants belong to timed automata, which are not supported; take the block out")
        commands = []
        while self.at("["):
            self._count("commands")
            commands.append(self._command())
        if not self.take("endmodule"):
            if self.peek() == ":":
                self.fail_expected(
                    "a command or 'endmodule'", "declare the module's variables before its commands"
                )
            expected = (
                "a command beginning with '[' or 'endmodule'"
                if commands
                else ("a variable 'name : type;', a command beginning with '[', or 'endmodule'")
            )
            self.fail_expected(expected, f"module '{name}' is still open")
        return Module(name, tuple(variables), tuple(commands), position)

    def _count(self, kind: str) -> None:
        """Count a variable or command and refuse more of them than the limits allow."""
        self._counts[kind] = self._counts.get(kind, 0) + 1
        most = getattr(current(), kind)
        if self._counts[kind] > most:
            self.fail(f"expected at most {most} {kind} in a model, got more; {raised(kind)}")

    # ------------------------------------------------------------------ variables

    def counted_variable(self) -> Variable:
        """Read a variable of a model, within the limits."""
        self._count("variables")
        return self.variable()

    def variable(self) -> Variable:
        """Read `name : [low..high] init value;` or `name : bool init value;`."""
        position = self.position()
        name = self.name("a variable's name")
        self.expect(":", f"after the variable '{name}'", "write name : [low..high] init value;")
        low = high = None
        if self.take("["):
            low = self.expression()
            self.expect("..", "between the bounds of a variable", "write [low..high]")
            high = self.expression()
            self.expect("]", "after the bounds of a variable", "write [low..high]")
        elif not self.take("bool"):
            self._refuse_type(name)
        initial = self.expression() if self.take("init") else None
        self.expect(";", f"after the declaration of '{name}'")
        return Variable(name, low, high, initial, position)

    def _refuse_type(self, name: str) -> None:
        if self.at("int"):
            self.fail(
                f"variable '{name}' is an unbounded int, which is not supported; give it bounds, "
                f"like {name} : [0..10]"
            )
        if self.at("clock"):
            self.fail(f"variable '{name}' is a clock; timed automata are not supported")
        if self.at("double"):
            self.fail(f"variable '{name}' is a double, which is not supported; use a bounded int or a bool")
        self.fail_expected("a type, [low..high] or bool", f"declare {name} : [low..high] or {name} : bool")

    # ------------------------------------------------------------------ commands

    def _command(self) -> Command:
        """Read `[action] guard -> updates;`."""
        position = self.position()
        self.index += 1
        action = None if self.at("]") else self.name("an action's name or ']' after '['")
        if self.at(","):
            self.fail("expected one action in a command, got several; commands of games are not supported")
        self.expect("]", "after the action")
        guard = self.expression()
        self.expect("->", "after the guard", "write [action] guard -> updates;")
        updates = [self._update()]
        if updates[0].weight is not None:
            while self.take("+"):
                update = self._update()
                if update.weight is None:
                    self._fail_weight(update)
                updates.append(update)
        elif self.at("+"):
            self._fail_weight(updates[0])
        if not self.take(";"):
            self.fail_expected("';' after a command", "separate updates with '+' and assignments with '&'")
        return Command(action, guard, tuple(updates), position)

    def _fail_weight(self, update: Update) -> None:
        self.fail(
            f"expected a weight before every one of several updates, got none at {update.position.line}:"
            f"{update.position.column}; write probability : update + probability : update"
        )

    def _update(self) -> Update:
        """Read `weight : assignments` or `assignments`."""
        position = self.position()
        weight: Expression | None = None
        if not (self._at_assignment() or self._at_true()):
            if self.at("["):
                self.fail("interval probabilities are not supported; write one number before ':'")
            if self.at(";"):
                self.fail_expected("an update after '->'", "write true for an update that changes nothing")
            weight = self._weight()
        if self._at_true():
            self.index += 1
            return Update(weight, (), position)
        assignments = [self._assignment()]
        while self.take("&"):
            assignments.append(self._assignment())
        return Update(weight, tuple(assignments), position)

    def _weight(self) -> Expression:
        """Read `weight :`; what looks like an assignment and is no weight lacks its apostrophe."""
        first = self.index
        is_bare = self.at("(") and self.peek().isidentifier() and self.peek(2) == "="
        try:
            weight = self.expression()
            self.expect(":", "after an update's weight", "write weight : (variable' = value) & ...")
        except SyntaxFaultError:
            if (
                is_bare
                and self.tokens[self.index] in (";", "'")
                and "?" not in self.tokens[first : self.index]
            ):
                self.index = first
                self._assignment()
            raise
        return weight

    def _at_true(self) -> bool:
        """Return whether `true` comes as an update, not as the beginning of a weight."""
        return self.at("true") and self.peek() in (";", "+", "&")

    def _at_assignment(self) -> bool:
        """Return whether an assignment follows, not a weight in brackets."""
        return self.at("(") and self.peek(2) == "'"

    def _assignment(self) -> Assignment:
        """Read `(variable' = expression)`."""
        advice = "write (variable' = value)"
        self.expect("(", "before an assignment", advice)
        position = self.position()
        name = self.name("a variable's name in an assignment")
        if not self.take("'"):
            self.fail_expected(f"an apostrophe after {name}, as in ({name}' = ...)")
        if not self.take("="):
            self.fail_expected(f"'=' after {name}' in an assignment", advice)
        value = self.expression()
        self.expect(")", "after an assignment", advice)
        return Assignment(name, value, position)

    # ------------------------------------------------------------------ renaming

    def _renaming(self, name: str, position: Position) -> Renaming:
        """Read `base [old=new, ...] endmodule`."""
        base = self.name("the name of the module to copy after '='")
        self.expect("[", "after the module to copy", "write module b = a [old=new, ...] endmodule")
        pairs = [self._pair()]
        while self.take(","):
            pairs.append(self._pair())
        self.expect("]", "or ',' after a renaming", "write module b = a [old=new, ...] endmodule")
        self.expect("endmodule", f"after the renamings of module '{name}'")
        return Renaming(name, base, tuple(pairs), position)

    def _pair(self) -> tuple[str, str, Position]:
        position = self.position()
        old = self._renamed()
        self.expect("=", "in a renaming", "write [old=new, ...]")
        return old, self._renamed(), position

    def _renamed(self) -> str:
        # The functions min and max are reserved words, and may be renamed all the same.
        if self.at("min") or self.at("max"):
            self.index += 1
            return self.tokens[self.index - 1]
        return self.name("a name in a renaming")


# Module renaming: writing out `module b = a [old=new, ...] endmodule`.
#
# A formula used in the copied module stands for its definition, in which names are replaced, too; so a
# formula whose definition mentions a renamed name is expanded before the renaming.


def expand_renamings(parts: Sequence[Module | Renaming], formulas: Sequence[Formula]) -> tuple[Module, ...]:
    """Carry out all renamings, also those of modules that are renamings themselves.

    `parts`: the modules in the order of the text. `formulas`: the model's formulas. Returns tuple of Module:
    in the order of `parts`. Raises LanguageError: with all faults: an unknown module, a circle of renamings,
    a name renamed twice, a variable that keeps its name.
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
            hint = suggestion(renaming.base, by_name) or f"; known are {listed(sorted(by_name))}"
            faults.add(
                renaming.position,
                f"module '{renaming.name}' copies the unknown module '{renaming.base}'{hint}",
            )
    graph = {part.name: [part.base] for part in renamings}
    order, cycles = dependency_order(graph)
    for cycle in cycles:
        circle = shown_circle(cycle, " = ")
        faults.add(by_name[cycle[0]].position, f"modules copy one another: {circle}; write one of them out")
    faults.raise_if_any()

    expander = _Formulas.of(formulas)
    size = _Size(parts)
    size.copies(by_name, order)
    modules = {part.name: part for part in by_name.values() if isinstance(part, Module)}
    for name in order:
        part = by_name[name]
        if isinstance(part, Renaming):
            modules[name] = _copy(modules[part.base], part, expander, size, faults)
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


class _Size:
    """The size of a model with its renamed modules written out, held against the limits."""

    def __init__(self, parts: Sequence[Module | Renaming]) -> None:
        self._limits = current()
        written = [part for part in parts if isinstance(part, Module)]
        self._commands = sum(len(part.commands) for part in written)
        self._variables = sum(len(part.variables) for part in written)
        self._nodes = 0

    def copies(self, parts: Mapping[str, Module | Renaming], order: Sequence[str]) -> None:
        """Count the variables and commands of all copies, of which none is made yet.

        `parts`: by their names. `order`: names that have each copy after what it copies.
        """
        sizes = {
            name: (len(part.variables), len(part.commands))
            for name, part in parts.items()
            if isinstance(part, Module)
        }
        for name in order:
            part = parts[name]
            if isinstance(part, Renaming):
                variables, commands = sizes[name] = sizes[part.base]
                self._variables += variables
                if self._variables > self._limits.variables:
                    self._refuse(part, f"{self._limits.variables} variables", "variables")
                self._commands += commands
                if self._commands > self._limits.commands:
                    self._refuse(part, f"{self._limits.commands} commands", "commands")

    def nodes(self, count: int, renaming: Renaming) -> None:
        """Count the nodes of a copy's expressions."""
        self._nodes += count
        if self._nodes > self._limits.nodes:
            self._refuse(renaming, f"{self._limits.nodes} operators and names in its copies", "nodes")

    @staticmethod
    def _refuse(renaming: Renaming, limit: str, name: str) -> NoReturn:
        message = (
            f"expected a model with at most {limit}, got more with module '{renaming.name}' written out; "
            f"copy fewer or smaller modules, or {raised(name)}"
        )
        raise LanguageError.single(renaming.position, message)


class _Formulas(Record):
    """A model's formulas, and which of them mention a name.

    `place`: of every formula that is on no circle: its place in an order that has each after those it
    mentions. `users`: for each name the formulas that mention it.
    """

    definitions: dict[str, Expression]
    place: dict[str, int]
    users: dict[str, list[str]]

    @classmethod
    def of(cls, formulas: Sequence[Formula]) -> _Formulas:
        """Return the formulas with their relations.  Time: O(size of the formulas)."""
        definitions = {formula.name: formula.expression for formula in formulas}
        graph = {name: expression_variables(definition) for name, definition in definitions.items()}
        # Formulas on a circle are left alone here; the check of names reports them.
        order, _ = dependency_order(graph)
        users: dict[str, list[str]] = {}
        for name, mentioned in graph.items():
            for used in mentioned:
                users.setdefault(used, []).append(name)
        return cls(definitions, {name: i for i, name in enumerate(order)}, users)

    def above(self, names: Iterable[str]) -> list[str]:
        """Return the formulas that mention these names or lead to them, each after those it mentions."""
        found: set[str] = set()
        pending = list(names)
        while pending:
            for user in self.users.get(pending.pop(), ()):
                if user not in found and user in self.place:
                    found.add(user)
                    pending.append(user)
        return sorted(found, key=self.place.__getitem__)


def _copy(
    base: Module, renaming: Renaming, formulas: _Formulas, size: _Size, faults: FaultCollector
) -> Module:
    """Return a module's copy with names replaced."""
    new = {old: name for old, name, _ in renaming.pairs}
    kept = [
        variable.name for variable in base.variables if new.get(variable.name, variable.name) == variable.name
    ]
    if kept:
        names = listed([f"'{name}'" for name in kept])
        more = listed([f"{name}={name}_{renaming.name}" for name in kept])
        faults.add(
            renaming.position,
            f"module '{renaming.name}' copies '{base.name}' without renaming its variables: {names} would be "
            f"declared twice; add new names, like {more}",
        )
    rename = _Renamer(new, formulas, size, renaming)
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

    def __init__(self, new: dict[str, str], formulas: _Formulas, size: _Size, renaming: Renaming) -> None:
        position = renaming.position
        self._renaming, self._size = renaming, size
        self._done: dict[int, tuple[Expression, Expression]] = {}
        self.functions = {old: name for old, name in new.items()}
        self.mapping: dict[str, Expression] = {old: Name(position, name) for old, name in new.items()}
        calls = "min" in new or "max" in new  # a call does not show which expressions mention it
        for name in list(formulas.place) if calls else formulas.above(new):
            if name not in new:
                definition = self(formulas.definitions[name])
                if definition is not formulas.definitions[name]:
                    self.mapping[name] = definition

    def __call__(self, expression: Expression) -> Expression:
        """Return the expression with all names replaced."""
        before = len(self._done)
        renamed = substitute(expression, self.mapping, self.functions, self._done)
        self._size.nodes(len(self._done) - before, self._renaming)
        return renamed
