"""Modules of the PRISM language: variables, commands and their updates."""

from __future__ import annotations

from dataclasses import dataclass

from mtbdd.language.errors import SyntaxFaultError
from mtbdd.language.expression_parser import ExpressionParser
from mtbdd.language.limits import current, raised
from mtbdd.language.model_syntax import Assignment, Command, Module, Update, Variable
from mtbdd.language.syntax import Expression, Position


@dataclass(frozen=True)
class Renaming:
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
