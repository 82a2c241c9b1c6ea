"""What stands alone around P and R: `multi(...)` and `quantile(...)`."""

from __future__ import annotations

from hybrid.properties.path_parser import PathParser
from hybrid.properties.tree import MultiObjective, Quantile
from mtbdd.language.syntax import Expression


class SeveralParser(PathParser):
    """Reads several objectives and quantiles; the parser of properties is built on it."""

    def multi(self) -> Expression:
        """Read `multi(objective, objective, ...)`."""
        position = self.position()
        self.index += 2
        objectives, texts = [], []
        while True:
            first = self.index
            objectives.append(self.state())
            texts.append(self.source(first, self.index))
            if not self.take(","):
                break
        self.expect(")", "or ',' in multi(...)", "write multi(P>=0.5 [ F a ], R<=3 [ C ])")
        return MultiObjective(position, tuple(objectives), tuple(texts))

    def quantile(self) -> Expression:
        """Read `quantile(min B, P>=p [ ... ])`."""
        position, advice = self.position(), 'write quantile(min B, P>=p [ F{"x"}<=B states ])'
        self.index += 2
        optimum, self.bounded = self._quantile_variable(advice)
        while self.peek() == "," or self.at("min") or self.at("max"):
            self.refuse("quantile(...) asks for one bound: several at once are not supported; leave one")
            self._quantile_variable(advice)
        probability = self.state()
        self.bounded = None
        self.expect(")", "to close quantile(...)", advice)
        return Quantile(position, optimum, probability)

    def _quantile_variable(self, advice: str) -> tuple[str, str]:
        """Read `min B,`; without a word the least bound is meant."""
        optimum = self.optimum(None) or "min"
        name = self.name("the name of the bound")
        self.expect(",", "after the name of the bound", advice)
        return optimum, name

    def optimum(self, given: str | None) -> str | None:
        """Read `min` or `max`, unless the operator's word said it."""
        if self.at("min") or self.at("max"):
            if given is not None:
                self.fail_expected("'=?' or a bound", "say min or max once")
            self.index += 1
            return self.tokens[self.index - 1]
        return given
