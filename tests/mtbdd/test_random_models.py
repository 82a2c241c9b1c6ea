"""Random small models: the symbolic build equals the explicit-state interpreter, faults included."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from mtbdd.build.build import build_model
from mtbdd.build.model import SymbolicModel
from mtbdd.graph.prob01 import bottom_components, prob0, prob1
from mtbdd.language import LanguageError, parse_model, resolve
from mtbdd.offset.states import index_states
from tests.builders.diagram_packages import FASTEST
from tests.builders.matrices import to_dense
from tests.builders.models import members, state_set
from tests.oracles import chains as oracles
from tests.oracles.comparing import assert_same_model
from tests.oracles.expressions import OracleFaultError
from tests.oracles.models import ExplicitModel, explore

Draw = st.DrawFn


@dataclass(frozen=True)
class Variable:
    name: str
    low: int
    high: int
    is_bool: bool
    module: int | None  # None: global


@dataclass(frozen=True)
class Scope:
    """Draws expressions over variables; every value is defined."""

    draw: Draw
    variables: list[Variable]

    def chosen(self, is_bool: bool) -> str:
        names = [v.name for v in self.variables if v.is_bool == is_bool]
        return self.draw(st.sampled_from(names or ["true"]))

    def integer(self, depth: int = 2) -> str:
        names = [v.name for v in self.variables if not v.is_bool]
        leaves = [*names, *names, "1", "2", "0", "-1"]
        kind = self.draw(st.integers(0, 6 if depth else 0))
        if kind <= 1:
            return self.draw(st.sampled_from(leaves))
        a, b = self.integer(depth - 1), self.integer(depth - 1)
        if kind == 2:
            return f"({a} + {b})"
        if kind == 3:
            return f"({a} - {b})"
        if kind == 4:
            return self.draw(st.sampled_from([f"min({a}, {b})", f"max({a}, {b})", f"{a} * {b}"]))
        if kind == 5:
            return self.draw(st.sampled_from([f"mod({a}, 3)", f"floor(({a})/2)", f"ceil(({a})*0.5)"]))
        return f"({self.boolean(depth - 1)} ? {a} : {b})"

    def boolean(self, depth: int = 2) -> str:
        kind = self.draw(st.integers(0, 5 if depth else 1))
        if kind == 0:
            return self.chosen(True)
        if kind <= 2:
            relation = self.draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
            return f"{self.integer(max(depth - 1, 0))} {relation} {self.integer(0)}"
        a, b = self.boolean(depth - 1), self.boolean(depth - 1)
        if kind == 3:
            return f"!({a})"
        operator = self.draw(st.sampled_from(["&", "|", "=>", "<=>"]))
        return f"(({a}) {operator} ({b}))"

    def rate(self) -> str:
        """Draw a rate; one in many is negative somewhere."""
        kind = self.draw(st.integers(0, 9))
        if kind <= 4:
            return self.draw(st.sampled_from(["1", "0.5", "2.25", "1/3", "1e-3", "0"]))
        if kind == 9:
            return f"({self.integer(1)})"
        scale = self.draw(st.sampled_from(["0.5", "1", "0.1"]))
        return f"{scale} * max(0, {self.integer(1)})"

    def weights(self, is_dtmc: bool) -> list[str]:
        """Draw the weights of a command's updates; those of one DTMC in many do not add up to 1."""
        if not is_dtmc:
            return [self.rate() for _ in range(self.draw(st.integers(1, 3)))]
        kind = self.draw(st.integers(0, 12))
        if kind <= 3:
            return ["1"]
        if kind <= 6:
            p = self.draw(st.sampled_from(["0.5", "1/3", "0.1"]))
            return [p, f"1 - {p}"]
        if kind <= 8:
            return ["0.25", "0.25", "0.5"]
        if kind <= 11:
            p = f"({self.boolean(1)} ? {self.draw(st.sampled_from(['0.25', '0', '1']))} : 0.5)"
            return [p, f"1 - {p}"]
        return ["0.5", f"0.5 * ({self.integer(0)})"]

    def assignment(self, v: Variable) -> str:
        """Draw a new value; one in many leaves the range somewhere."""
        if v.is_bool:
            return f"({v.name}'={self.boolean(1)})"
        value = self.integer()
        kind = self.draw(st.integers(0, 11))
        if kind == 0:
            return f"({v.name}'={value})"
        if kind <= 4:
            step = self.draw(st.sampled_from(["min({high}, {name}+1)", "max({low}, {name}-1)"]))
            return f"({v.name}'={step.format(name=v.name, low=v.low, high=v.high)})"
        return f"({v.name}'=max({v.low}, min({v.high}, {value})))"


@st.composite
def models(draw: Draw) -> str:
    """Draw a model text: 1 to 3 modules, 2 to 4 variables, actions, rewards, labels."""
    is_dtmc = draw(st.booleans())
    n_modules = draw(st.integers(1, 3))
    variables = []
    for i in range(draw(st.integers(2, 4))):
        owner = draw(st.one_of(st.none(), st.integers(0, n_modules - 1), st.integers(0, n_modules - 1)))
        low = draw(st.integers(-2, 2))
        is_bool = draw(st.integers(0, 3)) == 0
        high = 1 if is_bool else low + draw(st.integers(0, 4))
        variables.append(Variable(f"v{i}", 0 if is_bool else low, high, is_bool, owner))
    scope = Scope(draw, variables)
    lines = ["dtmc" if is_dtmc else "ctmc"]
    has_initial_set = draw(st.integers(0, 4)) == 0

    def declaration(v: Variable) -> str:
        domain = "bool" if v.is_bool else f"[{v.low}..{v.high}]"
        if has_initial_set or draw(st.booleans()):
            return f"{v.name} : {domain};"
        value = draw(st.sampled_from(["true", "false"]) if v.is_bool else st.integers(v.low, v.high))
        return f"{v.name} : {domain} init {value};"

    lines += [f"global {declaration(v)}" for v in variables if v.module is None]
    actions = set()
    for module in range(n_modules):
        lines.append(f"module m{module}")
        lines += [f"  {declaration(v)}" for v in variables if v.module == module]
        for _ in range(draw(st.integers(0 if module else 1, 4))):
            action = draw(st.sampled_from(["", "", "a", "b"]))
            actions |= {action} - {""}
            writable = [v for v in variables if v.module == module or (v.module is None and not action)]
            updates = []
            for weight in scope.weights(is_dtmc):
                chosen = [v for v in writable if draw(st.booleans())]
                updates.append(f"{weight} : {' & '.join(map(scope.assignment, chosen)) or 'true'}")
            lines.append(f"  [{action}] {scope.boolean()} -> {' + '.join(updates)};")
        lines.append("endmodule")
    for name in ("first", "second"):
        lines.append(f'label "{name}" = {scope.boolean()};')
    lines.append("rewards")
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["", "[]", *(f"[{a}]" for a in sorted(actions))]))
        lines.append(f"  {kind} {scope.boolean(1)} : {scope.integer(1)} * 0.5;")
    lines.append("endrewards")
    if has_initial_set:
        lines.append(f"init {scope.boolean()} endinit")
    return "\n".join(lines)


def build_or_refuse(text: str, package: str) -> tuple[SymbolicModel, ExplicitModel] | None:
    """Build both ways; if the explicit model is at fault, the symbolic build must say so."""
    source = resolve(parse_model(text))
    try:
        explicit = explore(source)
    except OracleFaultError:
        event("refused")
        with pytest.raises(LanguageError):
            build_model(source, package=package)
        return None
    event("built" if explicit.n_states > 1 else "built, one state")
    return build_model(source, package=package), explicit


COMMON = {"suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}


@settings(max_examples=60, **COMMON)
@given(models())
def test_symbolic_model_equals_explicit(text: str) -> None:
    both = build_or_refuse(text, FASTEST)
    if both is not None:
        assert_same_model(*both)


@settings(max_examples=20, **COMMON)
@given(models())
def test_symbolic_model_equals_explicit_in_pure_python(text: str) -> None:
    both = build_or_refuse(text, "autoref")
    if both is not None:
        assert_same_model(*both)


@settings(max_examples=25, **COMMON)
@given(models())
def test_symbolic_model_equals_explicit_with_other_paths(text: str) -> None:
    """Expressions split, events grouped, rewards state by state, sums as vectors."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mtbdd.build.expressions._GRID_BITS", 0)
        patch.setattr("mtbdd.build.expressions._LONG_CHAIN", 1)
        patch.setattr("mtbdd.build.reach._PATIENCE", 1)
        patch.setattr("mtbdd.build.reach._CLOSURE_FLOOR", 0)
        patch.setattr("mtbdd.build.rewards._SYMBOLIC_BITS", -1)
        patch.setattr("mtbdd.offset.expansion._PAIRS", 0)
        both = build_or_refuse(text, FASTEST)
        if both is not None:
            assert_same_model(*both)


@settings(max_examples=40, **COMMON)
@given(models(), st.data())
def test_symbolic_graphs_and_submatrices_equal_explicit(text: str, data: st.DataObject) -> None:
    both = build_or_refuse(text, FASTEST)
    if both is None:
        return
    model, explicit = both
    states = st.sets(st.integers(0, explicit.n_states - 1))
    safe, target = data.draw(states), data.draw(states)
    nodes = [state_set(model, explicit, s) for s in (safe, target)]
    zero = prob0(model, *nodes)
    assert members(model, zero) == oracles.prob0(explicit.rates, safe, target)
    assert members(model, prob1(model, *nodes, zero)) == oracles.prob1(explicit.rates, safe, target)
    components = sorted((members(model, c) for c in bottom_components(model)), key=min)
    assert components == oracles.bottom_components(explicit.rates)
    rows, columns = sorted(safe), sorted(target)
    cut = model.submatrix(*(index_states(model.manager, node) for node in nodes))
    cut.validate()
    np.testing.assert_allclose(to_dense(cut), explicit.dense()[np.ix_(rows, columns)], rtol=1e-12)
