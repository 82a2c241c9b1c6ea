"""What the bounds of decision processes rest on, a test each: inductive bounds, rounding, certain steps."""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.solvers import Criterion, Interval, Optimistic, Status
from mtbdd.build.model import SymbolicModel
from tests.builders.choice_systems import reaching
from tests.builders.mdp_texts import SLOW_WAY, WAITING_ROOM
from tests.builders.models import build, build_mdp
from tests.oracles import optima
from tests.oracles.mdps import ExplicitMdp

SCALE = 2**12


def odd_process(seed: int, n: int = 5) -> str:
    """Two choices a state, among them way out; odd numbers over 2^12, which doubles and decimals hold."""
    rng = np.random.default_rng(seed)
    commands = []
    for s in range(n):
        for _ in range(2):
            a, b = (2 * int(w) + 1 for w in rng.integers(SCALE // 16, SCALE // 5, 2))
            others = rng.choice([t for t in range(n + 2) if t != s], 3, replace=False).tolist()
            parts = zip((a, b, SCALE - a - b), others, strict=True)
            commands.append(f"[] x={s} -> " + " + ".join(f"{w}/{SCALE}:(x'={t})" for w, t in parts) + ";")
    body = "\n".join(commands)
    return (
        f"mdp module m x:[0..{n + 1}];\n{body}\n[] x>={n} -> true; endmodule\n"
        f"init true endinit\nrewards x<{n} : 3; x=1 : 7; endrewards"
    )


@functools.cache
def processes() -> list[tuple[SymbolicModel, ExplicitMdp]]:
    return [build_mdp(odd_process(seed)) for seed in range(3)]


@functools.cache
def exact_optima(number: int, maximise: bool) -> tuple[list[Any], list[Any]]:
    """The probabilities of reaching 5, and the rewards until 5 or 6 is reached."""
    _, mdp = processes()[number]
    everything, target = set(range(mdp.graph.n_states)), optima.states_of(mdp, lambda v: v["x"] == 5)
    done = optima.states_of(mdp, lambda v: v["x"] >= 5)
    probabilities = optima.until(mdp, everything, target, maximise)
    return probabilities, optima.reachability_rewards(mdp, 0, done, maximise)


@pytest.mark.parametrize(
    ("epsilon", "maximise", "method"),
    [
        pytest.param(epsilon, *case, id=f"{epsilon}-{'max' if case[0] else 'min'}-{case[1]}")
        for k, epsilon in enumerate([1e-3, 1e-8, 1e-15])
        for case in (
            [(False, "optimistic"), (True, "interval")],
            [(False, "interval"), (True, "optimistic")],
        )[k % 2]
    ],
)
def test_lower_bounds_are_rounded_down_and_upper_bounds_up(
    method: str, maximise: bool, epsilon: float
) -> None:
    """As close as double precision allows for, iterates rounded to nearest would lie beyond the optimum."""
    word = "max" if maximise else "min"
    options = {"method": method, "epsilon": epsilon, "backend": "cpu"}
    for number, (model, _) in enumerate(processes()):
        probabilities, rewards = exact_optima(number, maximise)
        found = optima.checked(model, f"P{word}=? [ F x=5 ]", **options)
        optima.assert_encloses(found, probabilities, max(2 * epsilon, 1e-11))
        found = optima.checked(model, f"R{word}=? [ F x>=5 ]", **options)
        optima.assert_encloses(found, rewards, max(2 * epsilon, 1e-11))


@pytest.mark.parametrize("method", ["optimistic", "interval"])
@pytest.mark.parametrize("maximise", [False, True], ids=["min", "max"])
def test_bounds_that_stand_still_are_rounded_outward(method: str, maximise: bool) -> None:
    """Without cycles iterates come to an end: rounded to nearest, half of them lie above the optimum."""
    rng, n = np.random.default_rng(7300), 40
    commands = []
    for s in range(n):
        for _ in range(2):
            a, b, c = (2 * int(w) + 1 for w in rng.integers(SCALE // 16, SCALE // 8, 3))
            to = min(s + 1, n), min(s + 2, n), n, n + 1
            parts = zip((SCALE - a - b - c, a, b, c), to, strict=True)
            commands.append(f"[] x={s} -> " + " + ".join(f"{w}/{SCALE}:(x'={t})" for w, t in parts) + ";")
    body = "\n".join(commands)
    text = f"mdp module m x:[0..{n + 1}];\n{body}\n[] x>={n} -> true; endmodule\ninit true endinit"
    model, mdp = build_mdp(text)
    target = optima.states_of(mdp, lambda v: v["x"] == n)
    start = [Fraction(int(s in target)) for s in range(mdp.graph.n_states)]
    exact = optima.steps_back(mdp, start, n + 1, maximise, frozen=target)
    word = "max" if maximise else "min"
    found = optima.checked(model, f"P{word}=? [ F x={n} ]", method=method, epsilon=1e-15, backend="cpu")
    optima.assert_encloses(found, exact, 1e-11)


@pytest.mark.parametrize("maximise", [False, True], ids=["min", "max"])
@pytest.mark.parametrize("steps", [2, 3, 5, 8])
def test_every_step_adds_its_rounding_to_the_bounds(maximise: bool, steps: int) -> None:
    word = "max" if maximise else "min"
    for model, mdp in processes():
        target = optima.states_of(mdp, lambda v: v["x"] == 5)
        start = [Fraction(int(s in target)) for s in range(mdp.graph.n_states)]
        exact = optima.steps_back(mdp, start, steps, maximise, frozen=target)
        found = optima.checked(model, f"P{word}=? [ F<={steps} x=5 ]", backend="cpu")
        optima.assert_encloses(found, exact, 1e-12)
        zero = [Fraction(0)] * mdp.graph.n_states
        exact = optima.steps_back(mdp, zero, steps, maximise, structure=0)
        optima.assert_encloses(
            optima.checked(model, f"R{word}=? [ C<={steps} ]", backend="cpu"), exact, 1e-12
        )


@pytest.mark.parametrize("maximise", [False, True], ids=["min", "max"])
def test_next_steps_have_bounds_unless_they_are_certain(maximise: bool) -> None:
    word = "max" if maximise else "min"
    for model, mdp in processes():
        for wanted in ("x>=5", "x<=2", "x=1|x=3"):
            inside = optima.states_of(mdp, lambda v, w=wanted: _holds(w, v["x"]))
            start = [Fraction(int(s in inside)) for s in range(mdp.graph.n_states)]
            exact = optima.steps_back(mdp, start, 1, maximise)
            found = optima.checked(model, f"P{word}=? [ X {wanted} ]", backend="cpu")
            optima.assert_encloses(found, exact, 1e-13)


def _holds(wanted: str, x: int) -> bool:
    return {"x>=5": x >= 5, "x<=2": x <= 2, "x=1|x=3": x in (1, 3)}[wanted]


def test_certain_next_steps_are_exactly_one_and_impossible_ones_zero() -> None:
    """Probabilities that add up to one by rounding alone are not certain."""
    text = """
    mdp
    module m
      s : [0..3];
      [a] s=0 -> 0.1 : (s'=1) + 0.2 : (s'=2) + 0.7 : (s'=3);
      [b] s=0 -> 0.3 : (s'=1) + 0.7 : (s'=2);
      [c] s>0 -> true;
    endmodule
    """
    model = build(text)
    for prop, value in (("Pmax=? [ X s<3 ]", 1.0), ("Pmin=? [ X s=3 ]", 0.0), ("Pmin=? [ X s>0 ]", 1.0)):
        answer = hybrid.check(model, prop, backend="cpu")
        assert (answer.lower, answer.upper) == (value, value), prop
    for prop in ("Pmin=? [ X s<3 ]", "Pmax=? [ X s=3 ]"):
        answer = hybrid.check(model, prop, backend="cpu")
        assert answer.lower < answer.upper


@pytest.mark.parametrize("count", [3, 6, 10, 11, 13, 19, 49])
def test_a_step_that_cannot_miss_is_certain_although_its_sum_is_rounded(count: int) -> None:
    """Ten times 0.1 is less than one."""
    parts = " + ".join(f"1/{count} : (s'={t})" for t in range(1, count + 1))
    text = f"mdp module m s:[0..{count}]; [a] s=0 -> {parts}; [b] s=0 -> {parts}; [c] s>0 -> true; endmodule"
    for word in ("min", "max"):
        answer = hybrid.check(build(text), f"P{word}=? [ X s>0 ]", backend="cpu")
        assert (answer.lower, answer.upper) == (1.0, 1.0)


def test_a_step_that_may_miss_is_not_certain_although_its_sum_is_one() -> None:
    text = """
    mdp
    module m
      s : [0..3];
      [a] s=0 -> 0.5 : (s'=1) + (0.5-1e-17) : (s'=2) + 1e-17 : (s'=3);
      [b] s>0 -> true;
    endmodule
    """
    answer = hybrid.check(build(text), "Pmax=? [ X s=1|s=2 ]", backend="cpu")
    assert answer.lower < 1.0


@pytest.mark.parametrize("count", [49, 97])
def test_sums_of_many_probabilities_are_off_by_as_many_roundings(count: int) -> None:
    """The numbers of the text: k times 1 / count."""
    parts = " + ".join(f"1/{count} : (s'={t})" for t in range(1, count + 1))
    model = build(f"mdp module m s:[0..{count}]; [] s=0 -> {parts}; [] s>0 -> true; endmodule")
    for k in range(1, count, 9):
        answer = hybrid.check(model, f"Pmax=? [ X s>0 & s<={k} ]", backend="cpu")
        assert Fraction(answer.lower) <= Fraction(k, count) <= Fraction(answer.upper)


def test_a_least_reward_is_not_earned_by_missing_the_target() -> None:
    """The way to the trap costs less than the one to the target, which it misses."""
    text = """
    mdp
    module m
      s : [0..3];
      [trap] s=0 -> (s'=1);
      [half] s=0 -> 0.5 : (s'=1) + 0.5 : (s'=3);
      [way] s=0 -> (s'=2);
      [on] s=2 -> (s'=3);
      [stay] s=1 -> true;
      [done] s=3 -> true;
    endmodule
    rewards [trap] true : 1; [half] true : 1; [way] true : 5; [on] true : 2; endrewards
    """
    for engine in ("hybrid", "explicit"):
        answer = hybrid.check(build(text), "Rmin=? [ F s=3 ]", backend="cpu", engine=engine)
        assert Fraction(answer.lower) <= 7 <= Fraction(answer.upper)


# ------------------------------------------------------------------ inductive bounds


@pytest.mark.parametrize("maximise", [False, True], ids=["min", "max"])
@pytest.mark.parametrize("failures", [0, 1, 2])
def test_an_upper_bound_that_is_not_inductive_in_every_row_is_not_accepted(
    maximise: bool, failures: int
) -> None:
    """The first guesses are made to fail in one row."""
    slow = build(SLOW_WAY + 'label "open" = x<2; label "won" = x=2;')
    system = reaching(slow, "open", "won", maximise)
    steps, guesses = system.improve_repeatedly, []

    def failing(pair: Any, done: int, count: int, how: Any) -> None:
        steps(pair, done, count, how)
        if how.factor > 1.0:  # rounded up
            x, out = pair[(done + count - 1) % 2], pair[(done + count) % 2]
            if len(guesses) < failures:
                out[0] = 1.5 * x[0]
            guesses.append((x.copy(), out.copy()))

    system.improve_repeatedly = failing  # type: ignore[method-assign]
    found = Optimistic(Criterion(1e-4)).bounds(system, None)
    assert found.status is Status.CONVERGED
    assert len(guesses) > failures
    guess, image = guesses[-1]
    assert (image <= guess).all()
    assert (found.upper >= (0.6 if maximise else 0.25)).all()
    assert (found.upper - found.lower <= 1e-4 * found.upper).all()


def test_interval_iteration_keeps_a_known_ceiling() -> None:
    slow = build(SLOW_WAY + 'label "open" = x<2; label "won" = x=2;')
    for limit in (1, 2, 5):
        found = Interval(Criterion(1e-9, max_iterations=limit)).bounds(
            reaching(slow, "open", "won", True), 1.0
        )
        assert (found.lower <= 0.6).all()
        assert (0.6 <= found.upper).all() and (found.upper <= 1.0).all()


def test_an_end_component_left_in_is_no_answer() -> None:
    model = build(WAITING_ROOM + 'label "open" = x<2; label "won" = x=2;')
    system = reaching(model, "open", "won", True)
    criterion = Criterion(1e-6, max_iterations=400)
    for method in (Optimistic(criterion), Interval(criterion)):
        assert method.bounds(system, 1.0).status is not Status.CONVERGED
