"""Whatever the text, the only exception is `LanguageError`."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import example, given, settings
from hypothesis import strategies as st

from mtbdd.language import LanguageError, parse_constants, parse_expression, parse_model, resolve
from tests.builders.language_texts import TEXT, WHOLE
from tests.mtbdd.language.strategies import mutations, soups

RENAMED = """mdp
formula f = x=1 | y=0;
module a x:[0..2]; [go] f -> (x'=min(x+1,2)); [] !f -> 0.5:true+0.5:(x'=0); endmodule
module b = a [x=y, y=x, go=come, min=max] endmodule
init x=0 & y=1 endinit
rewards "r" [go] true:1; x=1:2/3; endrewards
"""

TOKENS = [
    *"dtmc ctmc mdp const int double bool formula label global module endmodule rewards endrewards".split(),
    *"init endinit system endsystem invariant clock true false min max floor pow mod log func filter".split(),
    *'P F U x y z "l" " \' ( ) [ ] { } < > <= >= = != => <=> ! & | + - * / ? : ; , . .. ->'.split(),
    *"0 1 2.5 1e9 1e999 9223372036854775807 // \u00e9".split(),
    "\n",
]

FEW = settings(max_examples=150)


def use(text: str) -> None:
    with suppress(LanguageError):
        resolve(parse_model(text), {"N": 3, "M": 1, "fast": True}, ignore_unknown=True)


@FEW
@given(mutations([WHOLE, TEXT, RENAMED], TOKENS))
def test_fuzz_mutated_models(text: str) -> None:
    use(text)


@FEW
@given(soups(TOKENS))
@example("mdp module m = m [m=m] endmodule")
@example("module m x:[0..1]; x:[0..1]; endmodule module m=m[x=x] endmodule module m=m[x=y] endmodule")
@example('"')
@example("'")
def test_fuzz_token_soup(text: str) -> None:
    use("mdp module m " + text)
    use(text)
    with suppress(LanguageError):
        parse_expression(text)


@FEW
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
@example("\x00")
@example("x\u2028= \u00b2")
@example("\u0660")
def test_fuzz_unicode(text: str) -> None:
    use(text)
    use("dtmc " + text)
    with suppress(LanguageError):
        parse_expression(text)
    with suppress(LanguageError):
        parse_constants(text)
