"""PRISM's combined file; its tables are those of the explicit files, which have tests of their own."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from hybrid.models.interchange import InterchangeError
from hybrid.models.interchange.text.prism import read_pexp
from mtbdd.language.syntax import ModelType
from tests.builders.explicit_models import write_listed
from tests.builders.text_models import assert_same, random_model
from tests.hybrid.models.interchange.foreign import foreign

TABLES = """# Transitions (DTMC)
2 2
0 1 1
1 1 1

# States
(s)
0:(0)
1:(7)

# Labels
0="init" 1="deadlock" 2="end"
0: 0
1: 2

# Reward structure
# State rewards
2 1
0 3

# Reward structure
# Transition rewards
2 0
"""


def test_pexp_reads_all_sections_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "m.pexp"
    path.write_text(TABLES)
    model = read_pexp(path)
    assert model.valuations["s"].tolist() == [0, 7]
    assert model.labels["end"].tolist() == [False, True] and not model.labels["deadlock"].any()
    (reward,) = model.rewards
    assert reward.name is None and reward.choices is None
    assert reward.states is not None and reward.states.tolist() == [3, 0]
    sections = TABLES.split("\n\n")
    path.write_text("\n\n".join([sections[0], *sections[1:][::-1]]) + "\n")
    assert_same(read_pexp(path), model)


def test_pexp_may_be_a_table_of_transitions_alone(tmp_path: Path) -> None:
    path = tmp_path / "m.pexp"
    path.write_text(TABLES.split("\n\n")[0].split("\n", 1)[1])
    model = read_pexp(path, type=ModelType.DTMC)
    assert model.initial.tolist() == [True, False] and not model.variables and not model.rewards


def test_pexp_tells_lines_of_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "m.pexp"
    for old, new, line in [
        ("1:(7)", "1:(x)", 9),
        ("1: 2\n", "1: 5\n", 14),
        ("0 3\n", "0 three\n", 19),
        ("2 0\n", "2 1\n", 23),
        ("# Labels", "# States", 11),
        ("# State rewards", "# Some rewards", 17),
        ("# Labels", "# Observations", 11),
    ]:
        assert old in TABLES
        path.write_text(TABLES.replace(old, new))
        with pytest.raises(InterchangeError, match=rf"m\.pexp:{line}: .*expected"):
            read_pexp(path)
    path.write_text(TABLES)
    assert read_pexp(path).places.entry(1).endswith("m.pexp:4")


def test_pexp_written_again_is_that_of_prism(tmp_path: Path) -> None:
    for name in ("tandem3", "coin2"):
        path = foreign(f"{name}.prism.pexp")
        theirs = path.read_text().rstrip("\n").split("\n")
        mine = write_listed(read_pexp(path), tmp_path / "m.pexp").read_text()
        written = mine.rstrip("\n").split("\n")
        # Chains lose the names of their actions.
        assert written == [line.removesuffix(" route") for line in theirs]


def test_pexp_without_variables_has_no_states(tmp_path: Path) -> None:
    model = random_model(np.random.default_rng(3), ModelType.MDP)
    bare = dataclasses.replace(model, variables=(), valuations={})
    path = write_listed(bare, tmp_path / "m.pexp")
    assert "# States" not in path.read_text()
    assert_same(read_pexp(path), bare)
