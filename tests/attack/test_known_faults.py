"""Faults that attacks have found, each as a test of its exact answer, with several engines and methods."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

import hybrid
from mtbdd.language import LanguageError
from tests.attack import balls
from tests.attack.cases import build
from tests.attack.evaluate import Expected
from tests.attack.formulas import Atom
from tests.attack.judge import FAILURES, judge
from tests.attack.open_faults import OPEN_FAULTS

HALF = Fraction(1, 2)
PLAIN: dict[str, Any] = {
    "engine": "hybrid",
    "backend": "cpu",
    "method": "auto",
    "epsilon": 1e-8,
    "absolute": False,
    "max_iterations": 1000,
}
ENGINES = ("hybrid", "explicit", "reference")
METHODS = ("auto", "optimistic", "interval")


@dataclass(frozen=True)
class Fault:
    """A question with its exact answer: a truth, a number, or an enclosure of one.

    Attributes
    ----------
    name : str
        The fault's name, a dot, and the variant's.
    """

    name: str
    text: str
    property: str
    exact: Fraction | bool | tuple[Fraction, Fraction]
    engines: tuple[str, ...] = ENGINES
    methods: tuple[str, ...] = ("auto",)
    options: dict[str, Any] = field(default_factory=dict)


def expected(exact):
    if isinstance(exact, bool):
        return Expected("truth", truth=exact)
    return Expected("number", *(exact if isinstance(exact, tuple) else (exact, exact)))


@cache
def model_of(text):
    return build(text)


def walk(n, p, kind="dtmc"):
    """A walk from the middle outwards, whose failures lead back."""
    return f"""{kind} module m s : [-{n}..{n}] init 0;
    [] s=0 -> 0.5:(s'=1)+0.5:(s'=-1);
    [] s>0 & s<{n} -> {p}:(s'=s+1)+1-{p}:(s'=0);
    [] s<0 & s>-{n} -> {p}:(s'=s-1)+1-{p}:(s'=0);
    [] s={n}|s=-{n} -> true;
    endmodule"""


def climb(n, p, kind="dtmc"):
    return f"""{kind} module m s : [0..{n}] init 0;
    [] s<{n} -> {p}:(s'=s+1)+1-{p}:(s'=0);
    [] s={n} -> true;
    endmodule"""


def two_steps(first, second, kind="dtmc"):
    return f"""{kind} module m s : [0..3] init 0;
    [] s=0 -> {first}:(s'=1)+1-{first}:(s'=3);
    [] s=1 -> {second}:(s'=2)+1-{second}:(s'=3);
    [] s>1 -> true;
    endmodule"""


# ------------------------------------------------------------------ S1: underflow of fixed points

S1 = [
    Fault(f"S1.{kind}-{n}-{p}-{i}", walk(n, p, kind), question.format(n=n), exact, engines, methods)
    for n, p, engines, methods, asked in (
        (400, "0.1", ("hybrid",), ("auto",), 2),
        (40, "1e-9", ("hybrid", "explicit"), ("auto",), 5),
        (3, "1e-170", ENGINES, METHODS, 5),
    )
    for kind in ("dtmc", "ctmc", "mdp")
    for i, (question, exact) in enumerate(
        (
            ("Pmax=? [ F s={n} ]" if kind == "mdp" else "P=? [ F s={n} ]", HALF),
            ("P>=0.4 [ F s={n} ]", True),
            ("P<0.4 [ F s={n} ]", False),
            ("Pmin=? [ G s<{n} ]" if kind == "mdp" else "P=? [ G s<{n} ]", HALF),
            *(() if kind == "mdp" else (("S=? [ s={n} ]", HALF),)),
        )[:asked]
    )
]
RARE = """{kind} module m s : [0..3] init 0;
    [] s=0 -> 1e-200:(s'=1)+1-1e-200:(s'=0);
    [] s=1 -> 1e-200:(s'=2)+1-1e-200:(s'=0);
    [] s=2 -> 1e-200:(s'=3)+1-1e-200:(s'=0);
    [] s=3 -> true;
    endmodule
    rewards s=2 : 2e12; endrewards"""
S1 += [
    Fault(
        f"S1b.{kind}", RARE.format(kind=kind), f"R{opt}=? [ F s=3 ]", 2 * Fraction(10) ** 212, methods=METHODS
    )
    for kind, opt in (("dtmc", ""), ("mdp", "max"))
]

# ------------------------------------------------------------------ S2: positive values told as 0

TINY = Fraction(1, 10**400)
RACE = """ctmc module m s : [0..2] init 0;
    [] s=0 -> 1e-200:(s'=2)+1e150:(s'=1);
    [] s>0 -> true;
    endmodule"""
RACED = Fraction("1e-200") / (Fraction("1e-200") + Fraction("1e150"))
S2 = [
    *(
        Fault(f"S2.climb-{kind}-{i}", climb(400, "0.1", kind), question, exact, ("hybrid", "explicit"))
        for kind in ("dtmc", "mdp")
        for i, (question, exact) in enumerate(
            (
                ("Pmax=? [ F<=400 s=400 ]" if kind == "mdp" else "P=? [ F<=400 s=400 ]", TINY),
                ("P<=0 [ F<=400 s=400 ]", False),
                *(() if kind == "mdp" else (("P>0 [ F<=400 s=400 ]", True),)),
            )
        )
    ),
    *(
        Fault(f"S2.two-{kind}-{i}", two_steps("1e-200", "1e-130", kind), question, exact, methods=METHODS)
        for kind, opt in (("dtmc", ""), ("mdp", "min"))
        for i, (question, exact) in enumerate(
            (
                (f"P{opt}=? [ F s=2 ]", Fraction("1e-330")),
                ("P>0 [ F s=2 ]", True),
                ("P<=0 [ F s=2 ]", False),
                (f"P{opt}=? [ F<=2 s=2 ]", Fraction("1e-330")),
            )
        )
    ),
    Fault("S2.race-F", RACE, "P=? [ F s=2 ]", RACED, methods=METHODS),
    Fault("S2.race-X", RACE, "P=? [ X s=2 ]", RACED),
    Fault("S2.race-X-truth", RACE, "P>0 [ X s=2 ]", True),
    Fault("S2.subnormal", two_steps("3e-160", "7e-162"), "P=? [ F<=2 s=2 ]", Fraction("2.1e-321")),
    Fault("S2.squared", two_steps("1e-200", "1e-200"), "P>0 [ F s=2 ]", True, methods=METHODS),
]

# ------------------------------------------------------------------ S3: steps left out

LINK = "1/18014398509481984"  # 2**-54
BLOCKS = f"""{{kind}} module m s : [0..4] init 0;
    [] s=0 -> 0.25:(s'=1)+0.75-{LINK}:(s'=0)+{LINK}:(s'=4);
    [] s=1 -> 0.5:(s'=0)+0.5:(s'=1);
    [] s=2 -> 0.25:(s'=3)+0.75:(s'=2);
    [] s=3 -> 0.25:(s'=2)+0.75:(s'=3);
    [] s=4 -> (s'=2);
    endmodule
    rewards s=0|s=2 : 1; endrewards"""
LINKED = Fraction(1, 2**54)
QUARTER = Fraction(1, 4)
BLOCK_ROWS = [
    {1: QUARTER, 0: 1 - QUARTER - LINKED, 4: LINKED},
    {0: HALF, 1: HALF},
    {3: QUARTER, 2: 1 - QUARTER},
    {2: QUARTER, 3: 1 - QUARTER},
    {2: Fraction(1)},
]


@cache
def in_blocks(time, continuous=False):
    """Return the probability of being in 0 or 2 after some steps or a time, enclosed."""
    if continuous:
        matrix, _, error = balls.exponential(BLOCK_ROWS, Fraction(time))
    else:
        matrix, error = balls.power(BLOCK_ROWS, int(Fraction(time)))
    return balls.times(matrix, error, [(Fraction(s in (0, 2)),) * 2 for s in range(5)])[0]


def steps_left_out():
    for steps in ("1000000", "1000000000", "1000000000000"):
        low, high = in_blocks(steps)
        text, engines = BLOCKS.format(kind="dtmc"), ENGINES if steps == "1000000" else ("hybrid",)
        yield Fault(f"S3.F-{steps}", text, f"P=? [ F[{steps},{steps}] s=0|s=2 ]", (low, high), engines)
        yield Fault(f"S3.I-{steps}", text, f"R=? [ I={steps} ]", (low, high), engines)
        yield Fault(
            f"S3.G-{steps}", text, f"P=? [ G[{steps},{steps}] s=1|s=3|s=4 ]", (1 - high, 1 - low), engines
        )
    low, high = in_blocks("1000000000000")
    middle = (low + Fraction(2, 3)) / 2  # between the value and that of a chain without the link
    truth = f"P>={float(middle):.9f} [ F[1000000000000,1000000000000] s=0|s=2 ]"
    yield Fault("S3.truth", BLOCKS.format(kind="dtmc"), truth, False, ("hybrid",))
    low, high = in_blocks("1000000", True)
    yield Fault("S3.time", BLOCKS.format(kind="ctmc"), "P=? [ F[1000000,1000000] s=0|s=2 ]", (low, high))


# ------------------------------------------------------------------ S4: rows that add up to 1 only nearly

THIRDS = """dtmc module m s : [0..2] init 0;
    [] s<2 -> 0.333333:(s'=0)+0.333333:(s'=1)+0.333333:(s'=2);
    [] s=2 -> true;
    endmodule
    rewards "one" true : 1; endrewards"""
UNEVEN = """dtmc module m s : [0..1] init 0;
    [] s=0 -> 0.666666:(s'=1)+0.333333:(s'=0);
    [] s=1 -> 2/3:(s'=0)+1/3:(s'=1);
    endmodule"""
S4 = [
    Fault("S4.C1", THIRDS, 'R{"one"}=? [ C<=1 ]', Fraction(1)),
    Fault("S4.C10", THIRDS, 'R{"one"}=? [ C<=10 ]', Fraction(10)),
    Fault("S4.F", THIRDS, 'R{"one"}=? [ F s=2 ]', Fraction(3), methods=METHODS),
    Fault("S4.F-mdp", THIRDS.replace("dtmc", "mdp"), 'R{"one"}max=? [ F s=2 ]', Fraction(3), methods=METHODS),
    Fault("S4.truth", THIRDS, 'R{"one"}<=1 [ C<=1 ]', True),
    Fault("S4.S", UNEVEN, "S=? [ s=0 ]", HALF),
]

# ------------------------------------------------------------------ S5 to S7

ENDS = """dtmc module m s : [0..2] init 0;
    [] s=0 -> 0.1:(s'=1)+0.9:(s'=2);
    [] s>0 -> true;
    endmodule
    rewards s=1 : {gain}; s=2 : -1; endrewards"""
CLOSE = """dtmc module m s : [0..6] init 0;
    [] s=0 -> 0.5:(s'=1)+0.5:(s'=2);
    [] s=1 -> 0.9:(s'=5)+0.05:(s'=3)+0.05:(s'=4);
    [] s=2 -> 0.9:(s'=6)+0.05000001:(s'=3)+0.04999999:(s'=4);
    [] s=5 -> (s'=1);
    [] s=6 -> (s'=2);
    [] s=3|s=4 -> true;
    endmodule"""
ALMOST = """mdp module m s : [0..3] init 0;
    [] s=0 -> 0.5:(s'=1)+0.5-1e-17:(s'=2)+1e-17:(s'=3);
    [] s>0 -> true;
    endmodule"""
S567 = [
    Fault("S5.near", ENDS.format(gain="9.000000001"), "R=? [ S ]", Fraction("1e-10")),
    Fault("S5.zero", ENDS.format(gain="9"), "R=? [ S ]", Fraction(0)),
    *(
        Fault(f"S6.{operator}-{i}", CLOSE, question, exact, options={"epsilon": 1e-3})
        for operator in ("argmin", "argmax")
        for i, (question, exact) in enumerate(
            (
                (f"P=? [ X filter({operator}, P=? [ F s=3 ], s=1|s=2) ]", HALF),
                (f"P>=1 [ X filter({operator}, P=? [ F s=3 ], s=1|s=2) ]", False),
            )
        )
    ),
    *(
        Fault(f"S7.{kind}-{i}", ALMOST.replace("mdp", kind), question, exact)
        for kind in ("mdp", "dtmc")
        for i, (question, exact) in enumerate(
            (
                ("Pmax=? [ X s=1|s=2 ]" if kind == "mdp" else "P=? [ X s=1|s=2 ]", 1 - Fraction("1e-17")),
                ("P>=1 [ X s=1|s=2 ]", False),
                ("P<1 [ X s=1|s=2 ]", True),
            )
        )
    ),
]

# ------------------------------------------------------------------ S8: numbers of the text

FAIR = """dtmc module m s : [0..55] init 0;
    [] s<54 -> 0.5:(s'=55)+0.5:(s'=s+1);
    [] s>53 -> true;
    endmodule"""
THIRD = """dtmc module m s : [0..2] init 0; [] s=0 -> 1/3:(s'=1)+2/3:(s'=2); [] s>0 -> true; endmodule
    rewards s=0 : 349807651257/310100; endrewards"""
STAYING = """dtmc module m s : [0..2] init 0;
    [] s=0 -> 0.5:(s'=0)+{p}/2:(s'=1)+(1-{p})/2:(s'=2);
    [] s>0 -> true;
    endmodule
    rewards s=0 : 349807651257/620200; endrewards"""
S8 = [
    # 1 - 2**-54 against a decimal below it.
    Fault("S8.ones", FAIR, "P>=0.9999999999999999 [ G s!=54 ]", True),
    Fault("S8.ones-strict", FAIR, "P<0.9999999999999999 [ G s!=54 ]", False),
    Fault("S8.ones-reached", FAIR, "P>=0.9999999999999999 [ F s=55 ]", True),
    Fault("S8.two-thirds", THIRD, "P>0.6666666666666666 [ F s=2 ]", True),
    Fault("S8.two-thirds-above", THIRD, "P<0.6666666666666667 [ F s=2 ]", True),
    Fault("S8.two-thirds-tie", THIRD, "P>=2/3 [ F s=2 ]", True),
    Fault("S8.two-thirds-no", THIRD, "P>2/3 [ F s=2 ]", False),
    *(
        Fault(
            f"S8.fraction-{i}", STAYING.format(p="0.5"), f"R{comparison}349807651257/310100 [ F s>0 ]", exact
        )
        for i, (comparison, exact) in enumerate(((">", False), (">=", True), ("<", False), ("<=", True)))
    ),
    *(
        Fault(f"S8.{p}-{i}", STAYING.format(p=p), f"P{comparison}{p} [ F s=1 ]", exact)
        for p in ("0.9999999999999996", "0.419372688353671")
        for i, (comparison, exact) in enumerate(((">", False), (">=", True), ("<", False), ("<=", True)))
    ),
]

# ------------------------------------------------------------------ S9 to S11: rounding, overflow, underflow

SUMS = """dtmc module m s : [0..0] init 0; [] true -> true; endmodule
    rewards "a" true : 1e17; true : 1; true : -1e17; endrewards
    rewards "b" true : 1e16; true : 1; endrewards
    rewards "c" true : 0.1; true : 0.2; endrewards"""
HUGE = """{kind} module m s : [0..10] init 0; [] s<10 -> (s'=s+1); [] s=10 -> true; endmodule
    rewards s<10 : 1e308; endrewards"""
SUBNORMAL = """ctmc module m s : [0..2] init 0;
    [] s=0 -> {rate}:(s'=1)+5.76e-321:(s'=2);
    [] s>0 -> true;
    endmodule"""
FAR = """ctmc module m s : [0..3] init 0;
    [] s=0 -> 1e-300:(s'=1)+1e-100:(s'=3);
    [] s=1 -> 1e-130:(s'=2)+1e-100:(s'=3);
    [] s>1 -> true;
    endmodule"""
STUCK = """ctmc module m s : [0..3] init 0;
    [] s=0 -> 0.5:(s'=3)+7e-200:(s'=1);
    [] s=1 -> 3:(s'=0)+3:(s'=2);
    [] s=2 -> 7e-300:(s'=0)+7e200:(s'=2);
    [] s=3 -> 2e5:(s'=0);
    endmodule
    rewards s=1 : 4/3; s=0 : 0.3; endrewards"""
_SEVEN = 7 * Fraction("1e-200")
_LONG = 1 + Fraction("2.5e-6") + _SEVEN / 6 + _SEVEN / 2 / (7 * Fraction("1e-300"))
_STEP = [Fraction(a) / (Fraction(a) + Fraction("1e-100")) for a in ("1e-300", "1e-130")]
S9_11 = [
    Fault("S9.cancel", SUMS, 'R{"a"}=? [ I=1 ]', Fraction(1)),
    Fault("S9.cancel-C", SUMS, 'R{"a"}=? [ C<=1 ]', Fraction(1)),
    Fault("S9.cancel-truth", SUMS, 'R{"a"}>=1 [ I=1 ]', True),
    Fault("S9.carry", SUMS, 'R{"b"}>10000000000000000 [ I=1 ]', True),
    Fault("S9.carry-S", SUMS, 'R{"b"}>10000000000000000 [ S ]', True),
    Fault("S9.tenths", SUMS, 'R{"c"}=? [ I=1 ]', Fraction("0.3")),
    Fault("S9.constants", SUMS, "0.1 + 0.2 + 0*(P=? [ F true ])", Fraction("0.3")),
    Fault("S9.third", SUMS, "(P=? [ F true ])/3", Fraction(1, 3)),
    *(
        Fault(f"S10.{kind}-{i}", HUGE.format(kind=kind), question, Fraction(10) ** 309)
        for kind, opt in (("dtmc", ""), ("mdp", "max"))
        for i, question in enumerate((f"R{opt}=? [ F s=10 ]", f"R{opt}=? [ C<=30 ]", f"R{opt}=? [ C ]"))
    ),
    Fault("S10.arithmetic", SUMS, "(P=? [ F true ])*1e308*10", Fraction(10) ** 309),
    Fault("S11.far", FAR, "P=? [ F s=2 ]", _STEP[0] * _STEP[1], methods=METHODS),
    Fault("S11.far-truth", FAR, "P>0 [ F s=2 ]", True),
    Fault("S11.durations", STUCK, "R=? [ S ]", (Fraction("0.3") + _SEVEN / 6 * Fraction(4, 3)) / _LONG),
]

# ------------------------------------------------------------------ the tests

FAULTS = [*S1, *S2, *steps_left_out(), *S4, *S567, *S8, *S9_11]


def _runs():
    """Every method with the hybrid engine, and the default one with the others.

    `make test` has one of them a variant, and each of them with every third; all are nightly.
    """
    for number, fault in enumerate(FAULTS):
        ways = [("hybrid", method) for method in fault.methods if "hybrid" in fault.engines]
        ways += [(engine, "auto") for engine in fault.engines if engine != "hybrid"]
        for place, (engine, method) in enumerate(ways):
            name = f"{fault.name}-{engine}-{method}"
            opened = bool(OPEN_FAULTS & {fault.name, name})
            marks = [pytest.mark.xfail(reason=fault.name.split(".")[0])] if opened else []
            if place not in (0, number % len(ways)):
                marks.append(pytest.mark.nightly)
            yield pytest.param(fault, engine, method, id=name, marks=marks)


@pytest.mark.parametrize(("fault", "engine", "method"), list(_runs()))
def test_fault_is_mended(fault, engine, method):
    options = {**PLAIN, "method": method, **fault.options}
    options |= {"backend": "reference"} if engine == "reference" else {"engine": engine}
    answer = hybrid.check(model_of(fault.text), fault.property, throw=False, **options)
    verdict = judge(expected(fault.exact), answer, Atom(()), options)
    assert verdict.kind not in FAILURES, verdict.detail
    assert verdict.kind != "missed", verdict.detail


@pytest.mark.parametrize("question", ["P=? [ X s=1 ]", "P=? [ F s=1 ]"])
@pytest.mark.parametrize("rate", ["3e-320", "3"])
def test_rates_too_small_for_a_double_are_refused(rate, question):
    with pytest.raises(LanguageError, match="2.23e-308"):
        hybrid.check(build(SUBNORMAL.format(rate=rate)), question)


@pytest.mark.xfail("S-width" in OPEN_FAULTS, reason="S-width")
def test_long_run_of_stiff_rates_is_not_everything():
    # Bounds [0, 1] are true of any probability and no answer.
    text = """ctmc module m s : [0..2] init 0;
    [] s=0 -> 1e-8:(s'=1); [] s=1 -> 1e8:(s'=0)+1e-8:(s'=2); [] s=2 -> 1e8:(s'=1);
    endmodule"""
    answer = hybrid.check(model_of(text), "S=? [ s=0 ]")
    verdict = judge(expected((1 - Fraction(2, 10**16), Fraction(1))), answer, Atom(()), {**PLAIN})
    assert verdict.kind == "right", verdict.detail
