"""Compositions of modules: the expressions between `system` and `endsystem`.

Hiding and renaming bind most strongly, then `|[a,b]|`, then `||`, then `|||`.  PRISM's manual defines the
first of these rules only and asks for brackets; the others are how PRISM reads texts without them.
"""

from __future__ import annotations

from collections.abc import Callable

from mtbdd.language.expression_parser import ExpressionParser
from mtbdd.language.model_syntax import (
    ActionRenaming,
    Composition,
    Hiding,
    ModuleReference,
    Parallel,
    SystemBlock,
    SystemReference,
)


class CompositionParser(ExpressionParser):
    """Reads system blocks; the parser of whole models is built on it."""

    def system(self) -> SystemBlock:
        """Read `system ... endsystem`, the word `system` being next."""
        position = self.position()
        self.index += 1
        # In `system "a" endsystem` the quotes refer to another block, before more they name this one.
        quoted = self.tokens[self.index][:1] == '"'
        name = None
        if quoted and self.peek() not in ("endsystem", "|", "/", "{"):
            name = self.quoted_name("the name of a system block")
        composition = self._interleaved()
        if not self.take("endsystem"):
            self.fail_expected("'endsystem' or one of || ||| |[a,b]| /{a,b} {a<-b} in a system block")
        return SystemBlock(name, composition, position)

    # ------------------------------------------------------------------ operators

    def _bars(self) -> int:
        """Return how many signs `|` come next; -1 for those of `|[`."""
        if self.at("|") and self.peek() == "[":
            return -1
        count = 0
        while self.peek(count) == "|":
            count += 1
        return count

    def _interleaved(self) -> Composition:
        """Read `a ||| b ||| ...` or what binds more strongly."""
        return self._chain(3, self._alphabetised)

    def _alphabetised(self) -> Composition:
        """Read `a || b || ...` or what binds more strongly."""
        return self._chain(2, self._restricted)

    def _chain(self, bars: int, rule: Callable[[], Composition]) -> Composition:
        position = self.position()
        operands = [rule()]
        while self._bars() == bars:
            self.index += bars
            operands.append(rule())
        if len(operands) == 1:
            return operands[0]
        return Parallel(position, "|" * bars, tuple(operands))

    def _restricted(self) -> Composition:
        """Read `a |[x,y]| b` or what binds more strongly."""
        position = self.position()
        left = self._hidden_or_renamed()
        if self._bars() == 1:
            self.fail_expected("'||', '|||' or '|[actions]|' between modules")
        if self._bars() != -1:
            return left
        self.index += 2
        actions = self._actions("|[")
        self.expect("]", "or ',' after an action in '|[ ]|'", "write a |[x,y]| b")
        self.expect("|", "after '|[ ... ]'", "write a |[x,y]| b")
        right = self._hidden_or_renamed()
        if self._bars() == -1:
            self.fail("expected one '|[ ]|' without brackets, got a second one; write (a |[x]| b) |[y]| c")
        return Parallel(position, "|[]|", (left, right), actions)

    def _hidden_or_renamed(self) -> Composition:
        """Read what is followed by any number of `/ {a,b}` and `{a<-b}`."""
        position = self.position()
        result = self._operand()
        while True:
            if self.take("/"):
                self.expect("{", "after '/' in a system block", "write module / {a,b}")
                result = Hiding(position, result, self._actions("/ {"))
                self.expect("}", "or ',' after a hidden action", "write module / {a,b}")
            elif self.take("{"):
                result = ActionRenaming(position, result, self._pairs())
                self.expect("}", "or ',' after a renamed action", "write module {a<-b,c<-d}")
            else:
                return result

    def _operand(self) -> Composition:
        """Read a module's name, a system block's name in quotes, or a composition in brackets."""
        position = self.position()
        if self.take("("):
            inner = self._nested(self._interleaved)
            self.expect(")", f"to close the bracket opened at {position.line}:{position.column}")
            return inner
        if self.tokens[self.index][:1] == '"':
            return SystemReference(position, self.quoted_name("the name of a system block"))
        return ModuleReference(position, self.name("a module's name"))

    # ------------------------------------------------------------------ actions

    def _actions(self, where: str) -> tuple[str, ...]:
        """Read `a, b, ...`."""
        actions = [self.name(f"an action's name after '{where}'")]
        while self.take(","):
            self._refuse_repeated(actions)
            actions.append(self.name("an action's name after ','"))
        return tuple(actions)

    def _pairs(self) -> tuple[tuple[str, str], ...]:
        """Read `a<-b, c<-d, ...`."""
        pairs = [self._pair_of_actions()]
        while self.take(","):
            self._refuse_repeated([old for old, _ in pairs])
            pairs.append(self._pair_of_actions())
        return tuple(pairs)

    def _pair_of_actions(self) -> tuple[str, str]:
        old = self.name("an action's name in a renaming")
        advice = "write {old<-new}; the first action becomes the second"
        self.expect("<", f"after the action '{old}'", advice)
        self.expect("-", f"after '{old}<'", advice)
        return old, self.name("the action's new name after '<-'")

    def _refuse_repeated(self, actions: list[str]) -> None:
        if self.tokens[self.index] in actions:
            self.fail(f"action '{self.tokens[self.index]}' is named twice here; keep one")
