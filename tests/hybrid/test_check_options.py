"""Options stand once: fields, keywords, flags and the docs' table are those of the records."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import hybrid
from hybrid.analysis.run import options as run_options
from hybrid.analysis.run.options import CheckKeywords, CheckOptions, SolutionKeywords
from hybrid.app.cli.arguments import add_check
from hybrid.base.check_options import OPTIONS, options_table
from hybrid.base.errors import OptionError
from mtbdd.base import records
from mtbdd.base.errors import option
from tests.source_tree import ROOT

COIN = "dtmc module m x : [0..2]; [] x=0 -> 0.5 : (x'=1) + 0.5 : (x'=2); endmodule"
ASKED = "P=? [ F x=1 ]"


@pytest.fixture(scope="module")
def coin() -> Any:
    return hybrid.parse(COIN)


def test_keywords_are_the_fields_and_the_types_are_theirs() -> None:
    fields = {field.name: field for field in dataclasses.fields(CheckOptions)}
    hints = get_type_hints(
        CheckOptions, vars(records) | vars(run_options) | {"SolutionKeywords": SolutionKeywords}
    )
    assert get_type_hints(SolutionKeywords) == {name: hints[name] for name in fields}
    for name, field in fields.items():
        assert field.metadata["option"] is OPTIONS[name]
        assert field.default == OPTIONS[name].default
    assert set(get_type_hints(CheckKeywords)) == OPTIONS.keys() | {"progress", "ranks"}


def test_flags_are_those_of_the_records() -> None:
    parser = argparse.ArgumentParser()
    add_check(parser)
    made = {action.option_strings[0]: action for action in parser._actions if action.option_strings}
    for keyword, record in OPTIONS.items():
        assert (made[record.flag].dest, made[record.flag].help) == (record.dest, record.help)
        assert made[record.flag].default == record.flag_default or record.kind is bool
        assert option(record.flag.removeprefix("--")) == keyword


def test_the_table_of_the_docs_is_that_of_the_records() -> None:
    page = Path(ROOT / "docs/library.md").read_text(encoding="utf-8")
    assert options_table() in page, "put hybrid.base.check_options.options_table() into docs/library.md"


def test_keywords_go_before_options(coin: Any) -> None:
    options = CheckOptions(epsilon=1e-3, method="power")
    plain = hybrid.check(coin, ASKED, options=options)
    assert (plain.record()["method"], plain.lower) == ("power", None)
    assert hybrid.check(coin, ASKED, options=options, method="interval").lower is not None
    (answer,) = hybrid.check_all(coin, ASKED, options=options, omega=0.8, method="jor", values=True)
    assert answer.record()["method"] == "jor" and answer.values is not None
    (record,) = hybrid.experiment(coin, ASKED, {}, options=options)
    assert record["kind"] == "estimate"
    assert coin.steady_state(options=CheckOptions(epsilon=1e-6), method="jor").shape == (coin.n_states,)
    assert coin.transient(2, options=CheckOptions(backend="reference")).sum() == pytest.approx(1.0)


def test_check_all_has_at_most_eight_parameters() -> None:
    assert len(inspect.signature(hybrid.check_all).parameters) <= 8


def test_a_relaxation_without_a_method_asks_for_jor() -> None:
    assert CheckOptions(omega=0.8).method == "jor"
    assert CheckOptions.of("explicit", "cpu", omega=0.8) == CheckOptions("explicit", "cpu", omega=0.8)
    with pytest.raises(OptionError, match="epsilon must lie between 0 and 1"):
        CheckOptions(epsilon=2.0)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("check", lambda model, **more: hybrid.check(model, ASKED, **more)),
        ("check_all", lambda model, **more: hybrid.check_all(model, ASKED, **more)),
        ("experiment", lambda model, **more: hybrid.experiment(model, ASKED, {}, **more)),
        ("steady_state", lambda model, **more: model.steady_state(**more)),
        ("transient", lambda model, **more: model.transient(1, **more)),
    ],
)
def test_unknown_keywords_are_refused_with_the_nearest(coin: Any, call: str, name: Any) -> None:
    with pytest.raises(TypeError, match=rf"{call}\(\) takes no keyword 'epsilom'; did you mean 'epsilon'"):
        name(coin, epsilom=1e-3)
    with pytest.raises(TypeError, match=rf"{call}\(\): options: expected hybrid.CheckOptions, got dict"):
        name(coin, options={"epsilon": 1e-3})
