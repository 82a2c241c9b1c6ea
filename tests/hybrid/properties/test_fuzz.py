"""Whatever the text, the only exception is `LanguageError`."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import example, given, settings
from hypothesis import strategies as st

from hybrid.properties import parse_properties, resolve_properties
from mtbdd.language import LanguageError
from tests.builders.language_texts import DISCRETE, FILE, MODEL
from tests.mtbdd.language.strategies import mutations, soups

MIXED = """
const double T; label "l" = x=1; formula f = x;
P=? [ "full" U<=T (x=1) {b}{max} ]
"a": Pmin>=0.5 [ (G F b) & X "l" ]; "c": filter(forall, "a" => R{"moves"}=? [ F f=2 ] > 3, "init")
R{1}max=? [ C<=T+1 ] S<0.1 [ b ? true : !b ]
"""

TOKENS = [
    *"P Pmin Pmax S R Rmin Rmax filter X F G U W C I A E min max sum forall state".split(),
    *"const int double label".split(),
    *'formula true false x b y T "a" "l" "full" "init" " : ; , ( ) [ ] { } =? = ? <= < >= > => & | !'.split(),
    *"+ - * / 0 1 2.5 1e9 [F P=? P>=0.5 R{ // \u00e9".split(),
    "\n",
]

FEW = settings(max_examples=150)


def use(text: str) -> None:
    with suppress(LanguageError):
        properties = parse_properties(text)
        for model in (MODEL, DISCRETE):
            for keep_faults in (False, True):
                with suppress(LanguageError):
                    resolve_properties(properties, model, {"T": 2}, keep_faults=keep_faults)


@FEW
@given(mutations([FILE, MIXED], TOKENS))
@example(FILE)
@example(MIXED)
def test_fuzz_mutated_properties(text: str) -> None:
    use(text)


@FEW
@given(soups(TOKENS))
def test_fuzz_token_soup(text: str) -> None:
    use(text)
    use("P=? [ " + text)


@FEW
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_fuzz_unicode(text: str) -> None:
    use(text)
    use("P=? [ F " + text)


def test_deep_nesting_is_a_fault() -> None:
    for opening in ("P=? [ F ", "filter(min, ", "P=? [ F (", "F ", "(", "R=? [ "):
        use(opening * 20_000)
