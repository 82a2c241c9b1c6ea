"""Model files of the PRISM language: from text to `ModelSyntax`."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mtbdd.language.expression_parser import ExpressionParser
from mtbdd.language.module_parser import ModuleParser, Renaming, expand_renamings
from mtbdd.language.syntax import (
    ActionRenaming,
    Composition,
    Constant,
    Expression,
    Formula,
    Hiding,
    Label,
    ModelSyntax,
    ModelType,
    Module,
    ModuleReference,
    Parallel,
    RewardItem,
    RewardStructure,
    SystemBlock,
    SystemReference,
    Type,
    Variable,
)
from mtbdd.language.tokens import read_source

# Keeping Python's cycle collector out of the way while large trees are built.


@contextmanager
def paused_collector() -> Iterator[None]:
    """Pause the collection of reference cycles.

    Syntax trees have no cycles, and are so many objects that live on that looking through them again and
    again takes most of the time of a large model.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


# Compositions of modules: the expressions between `system` and `endsystem`.
#
# Hiding and renaming bind most strongly, then `|[a,b]|`, then `||`, then `|||`.  PRISM's manual defines the
# first of these rules only and asks for brackets; the others are how PRISM reads texts without them.


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


_MODEL_TYPES = {
    "dtmc": ModelType.DTMC,
    "probabilistic": ModelType.DTMC,
    "ctmc": ModelType.CTMC,
    "stochastic": ModelType.CTMC,
    "mdp": ModelType.MDP,
    "nondeterministic": ModelType.MDP,
}
_UNSUPPORTED_TYPES = {
    "pta": "probabilistic timed automata (pta)",
    "popta": "partially observable timed automata (popta)",
    "pomdp": "partially observable models (pomdp)",
    "ipomdp": "partially observable models (ipomdp)",
    "smg": "stochastic games (smg)",
    "csg": "stochastic games (csg)",
    "tsg": "stochastic games (tsg)",
    "stpg": "stochastic games (stpg)",
    "imdp": "interval models (imdp)",
    "idtmc": "interval models (idtmc)",
    "ctmdp": "continuous-time decision processes (ctmdp)",
    "ma": "Markov automata (ma)",
    "lts": "labelled transition systems (lts)",
}
_UNSUPPORTED_BLOCKS = {
    "observables": "observables belong to partially observable models, which are not supported",
    "observable": "observables belong to partially observable models, which are not supported",
    "player": "players belong to stochastic games, which are not supported",
    "invariant": "invariants belong to timed automata, which are not supported",
}
_TYPES = {"int": Type.INT, "double": Type.DOUBLE, "bool": Type.BOOL, "rate": Type.DOUBLE, "prob": Type.DOUBLE}


class DeclarationParser(ExpressionParser):
    """Reads the declarations that models and properties files share: constants, formulas, labels."""

    def constant(self) -> Constant:
        """Read `const type name = value;`, the type being int by default and the value optional."""
        if self.at("const"):
            self.index += 1
        type_ = _TYPES.get(self.tokens[self.index])
        if type_ is None:
            type_ = Type.INT
        else:
            self.index += 1
        position = self.position()
        name = self.name("a constant's name")
        value = self.expression() if self.take("=") else None
        if value is None and not self.at(";"):
            self.fail_expected(f"'=' or ';' after the constant '{name}'", "write const type name = value;")
        self.expect(";", f"after the value of the constant '{name}'")
        return Constant(name, type_, value, position)

    def formula(self) -> Formula:
        """Read `formula name = expression;`."""
        self.index += 1
        position = self.position()
        name = self.name("a formula's name")
        self.expect("=", f"after the formula's name '{name}'", "write formula name = expression;")
        expression = self.expression()
        self.expect(";", f"after the formula '{name}'")
        return Formula(name, expression, position)

    def label(self) -> Label:
        """Read `label "name" = expression;`."""
        self.index += 1
        position = self.position()
        name = self.quoted_name("a label's name")
        self.expect("=", f"after the label's name '{name}'", 'write label "name" = expression;')
        expression = self.expression()
        self.expect(";", f"after the label '{name}'")
        return Label(name, expression, position)


class _ModelParser(ModuleParser, CompositionParser, DeclarationParser):
    """Reads a whole model file."""

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text, file)
        self.type: ModelType | None = None
        self.constants: list[Constant] = []
        self.formulas: list[Formula] = []
        self.labels: list[Label] = []
        self.globals: list[Variable] = []
        self.modules: list[Module | Renaming] = []
        self.rewards: list[RewardStructure] = []
        self.initial: Expression | None = None
        self.systems: list[SystemBlock] = []

    def model(self) -> ModelSyntax:
        """Read all parts, then write out the renamed modules."""
        if self.at(""):
            self.fail_expected("a model", "begin with dtmc, ctmc or mdp, then give its modules")
        while not self.at(""):
            self._part(self.tokens[self.index])
        if not self.modules:
            self.fail_expected("at least one module", "write module name ... endmodule")
        return ModelSyntax(
            file=self.file,
            # PRISM's rule: what names no type is a decision process.
            type=self.type or ModelType.MDP,
            constants=tuple(self.constants),
            formulas=tuple(self.formulas),
            labels=tuple(self.labels),
            variables=tuple(self.globals),
            modules=expand_renamings(self.modules, self.formulas),
            rewards=tuple(self.rewards),
            initial=self.initial,
            systems=tuple(self.systems),
        )

    def _part(self, word: str) -> None:
        if word == "module":
            self.modules.append(self.module())
        elif word in ("const", "rate", "prob"):
            self.constants.append(self.constant())
        elif word == "formula":
            self.formulas.append(self.formula())
        elif word == "label":
            self.labels.append(self.label())
        elif word == "global":
            self.index += 1
            self.globals.append(self.counted_variable())
        elif word == "rewards":
            self.rewards.append(self._rewards())
        elif word == "init":
            self._initial()
        elif word == "system":
            self.systems.append(self.system())
        elif word in _MODEL_TYPES:
            if self.type is not None:
                self.fail(f"expected one model type, got a second one, '{word}'; keep one of them")
            self.type = _MODEL_TYPES[word]
            self.index += 1
        else:
            self._refuse_part(word)

    def _refuse_part(self, word: str) -> None:
        if word in _UNSUPPORTED_TYPES:
            self.fail(f"{_UNSUPPORTED_TYPES[word]} are not supported; expected dtmc, ctmc or mdp")
        if word in _UNSUPPORTED_BLOCKS:
            self.fail(_UNSUPPORTED_BLOCKS[word])
        begins = ["const", "formula", "label", "global", "module", "rewards", "init", "system", *_MODEL_TYPES]
        self.fail_expected(
            "a part of a model (const, formula, label, global, module, rewards, init or system)",
            self.spelling(begins).removeprefix("; "),
        )

    def _initial(self) -> None:
        if self.initial is not None:
            self.fail("expected one init ... endinit, got a second one; join them with '|'")
        self.index += 1
        self.initial = self.expression()
        self.expect("endinit", "after the predicate of the initial states")

    def _rewards(self) -> RewardStructure:
        """Read `rewards "name" ... endrewards`."""
        position = self.position()
        self.index += 1
        name = self.quoted_name("a reward structure's name") if self.tokens[self.index][:1] == '"' else None
        items = []
        while not self.take("endrewards"):
            if self.at(""):
                self.fail_expected("'endrewards'", "close the reward structure")
            items.append(self._reward_item())
        return RewardStructure(name, tuple(items), position)

    def _reward_item(self) -> RewardItem:
        """Read `guard : value;` or `[action] guard : value;`."""
        position = self.position()
        action = None
        is_transition = self.take("[")
        if is_transition:
            action = None if self.at("]") else self.name("an action's name or ']' after '['")
            self.expect("]", "after the action")
        guard = self.expression()
        self.expect(":", "between the guard and the value of a reward", "write guard : value;")
        value = self.expression()
        self.expect(";", "after a reward's value", "write guard : value;")
        return RewardItem(is_transition, action, guard, value, position)


def parse_model(text: str, file: str = "<model>") -> ModelSyntax:
    """Read a model in the PRISM language.

    Parameters
    ----------
    text : str
        The model's text.
    file : str
        Its name, for positions.

    Returns
    -------
    ModelSyntax
        Renamed modules are written out; names and types are not checked yet.

    Raises
    ------
    SyntaxFaultError
        At the first place that does not follow the grammar.
    LanguageError
        With all faults of the module renamings.

    Notes
    -----
    Time: O(length of the text with renamed modules written out).
    """
    with paused_collector():
        parser = _ModelParser(text, file)
        return parser.run(parser.model)


def load_model(path: str | os.PathLike[str]) -> ModelSyntax:
    """Read a model file.

    Parameters
    ----------
    path : path-like
        A text file, UTF-8.

    Returns
    -------
    ModelSyntax
        As from `parse_model`.

    Raises
    ------
    SourceError
        If the file cannot be read as text.
    LanguageError
        As from `parse_model`.
    """
    return parse_model(read_source(path), os.fspath(path))
