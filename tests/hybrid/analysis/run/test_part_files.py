"""Values of all states, written by several processes into one file: that of one process, byte for byte."""

from __future__ import annotations

import errno
import zipfile
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from hybrid.analysis.run import state_files as part_files
from hybrid.analysis.run.state_files import SharedFile, publish_state_values, write_state_values
from hybrid.base.state_values import StateTruth, StateValues
from hybrid.checking.in_parts import in_parts
from mtbdd.build import state_order
from mtbdd.build.build import build_model
from mtbdd.build.model import SymbolicModel
from mtbdd.build.state_order import own_numbers
from mtbdd.language import parse_model, resolve
from mtbdd.offset.states import states_from
from tests.exploring import each, rounds

TEXTS = {
    "dtmc": "dtmc module m x:[-2..6]; up:bool; [] x<6 -> 0.5:(x'=x+1)+0.5:(up'=!up); [] x=6 -> true; "
    "endmodule",
    "ctmc": "ctmc module m value:[0..30] init 0; [] value<30 -> 2:(value'=value+1); [] value>0 -> "
    "1:(value'=value-1); endmodule",
    "mdp": "mdp module a x:[0..5]; [] x<5 -> (x'=x+1); [] x>0 -> 0.5:(x'=0)+0.5:true; endmodule "
    "module b y:[0..5]; [] y<5 -> (y'=y+1); [] y=5 -> (y'=2); endmodule",
}
SUFFIXES = (".npz", ".csv")
ORDERS: tuple[Literal["model", "reversed"], ...] = ("model", "reversed")


@pytest.fixture(autouse=True)
def small_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_files, "_ROUND", 10)
    monkeypatch.setattr(state_order, "_ROUND", 8)


def made(kind: str, order: Literal["model", "reversed"] = "model") -> SymbolicModel:
    return build_model(resolve(parse_model(TEXTS[kind]), {}), order=order)


def drawn(rng: np.random.Generator, size: int) -> list[StateValues | StateTruth]:
    """Return values with bounds, exact ones, estimates, and truth values, some of them special."""
    values = rng.random(size)
    values[rng.integers(size, size=3)] = np.inf
    lower, upper = values - rng.random(size), values + rng.random(size)
    lower[rng.integers(size, size=3)] = np.nan
    truth = rng.random(size) < 0.5
    return [
        StateValues(values, lower, upper),
        StateValues.exact(values),
        StateValues(values, lower, upper).without_bounds(),
        StateTruth(truth, rng.random(size) < 0.2, rng.random(size) < 0.2),
        StateTruth(truth),
    ]


def dealt(model: SymbolicModel, parts: int, rng: np.random.Generator) -> tuple[tuple[Any, ...], Any]:
    """Return owners of states at random, each with one state or more, and whose each state is."""
    part = rng.permutation(np.arange(model.n_states) * parts // model.n_states)
    return tuple(states_from(model.manager, model.index, part == p) for p in range(parts)), part


@pytest.mark.parametrize(
    ("kind", "order", "parts"),
    each(product(sorted(TEXTS), ORDERS), [1, 2, 3, 4, 7]),
)
def test_the_file_is_that_of_one_process(
    kind: str, order: Literal["model", "reversed"], parts: int, tmp_path: Path, rng: np.random.Generator
) -> None:
    model = made(kind, order)
    owners, part = dealt(model, parts, rng)
    cases = drawn(rng, model.n_states)

    def run(own: SymbolicModel) -> None:
        for number, found in enumerate(cases):
            for suffix in SUFFIXES:
                write_state_values(
                    tmp_path / f"many{number}{suffix}", own, found.at(part == own.communicator.rank)
                )

    in_parts(model, parts, run, owners)
    # The model was not asked for the numbers of all states: parts find them by themselves.
    assert parts == 1 or order == "model" or "numbering" not in vars(model)
    for number, found in enumerate(cases):
        for suffix in SUFFIXES:
            one, many = (tmp_path / f"{name}{number}{suffix}" for name in ("one", "many"))
            write_state_values(one, model, found)
            assert many.read_bytes() == one.read_bytes(), (number, suffix)
            if suffix == ".npz":
                with zipfile.ZipFile(many) as archive:
                    assert archive.testzip() is None


@pytest.mark.parametrize("order", ORDERS)
def test_own_numbers_are_those_of_the_whole(
    order: Literal["model", "reversed"], rng: np.random.Generator
) -> None:
    for kind in TEXTS:
        for _ in range(rounds(6)):
            model, parts = made(kind, order), int(rng.integers(2, 6))
            owners, part = dealt(model, parts, rng)
            found: dict[int, Any] = {}

            def run(own: SymbolicModel, found: dict[int, Any] = found) -> None:
                # As the order of the text has it, and again with a list of numbers that is there.
                found[own.communicator.rank] = own_numbers(own)

            in_parts(model, parts, run, owners)
            merged = dict(found)
            wanted = np.arange(model.n_states) if model.numbering is None else model.numbering
            in_parts(model, parts, run, owners)
            for rank in range(parts):
                own = np.flatnonzero(part == rank)
                for numbers, indices in (merged[rank], found[rank]):
                    assert (np.diff(numbers) > 0).all()
                    np.testing.assert_array_equal(wanted[numbers], own[indices])


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("call", [1, 3])
def test_what_one_process_cannot_write_fails_in_all(
    suffix: str, call: int, tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made("mdp")
    owners, part = dealt(model, 3, rng)
    found, file = drawn(rng, model.n_states)[0], tmp_path / f"all{suffix}"
    file.write_text("older")
    put, calls, told = SharedFile.put, [0], []

    def fails(self: SharedFile, place: int, data: Any) -> None:
        if self.communicator.rank == 1:
            calls[0] += 1
            if calls[0] == call:
                raise OSError(errno.ENOSPC, "No space left on device")
        put(self, place, data)

    monkeypatch.setattr(SharedFile, "put", fails)

    def run(own: SymbolicModel) -> None:
        try:
            publish_state_values(file, own, found.at(part == own.communicator.rank))
        except OSError as error:
            told.append((error.errno, error.strerror))

    in_parts(model, 3, run, owners)
    assert told == [(errno.ENOSPC, "No space left on device (process 1 of 3)")] * 3
    assert [p.name for p in tmp_path.iterdir()] == [file.name] and file.read_text() == "older"


def test_no_process_holds_what_is_told_of_all_states(
    tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made("mdp")
    owners, part = dealt(model, 3, rng)
    found, sizes = drawn(rng, model.n_states)[0], []
    put = SharedFile.put

    def measured(self: SharedFile, place: int, data: Any) -> None:
        if self.communicator.rank:  # the first one writes headers, too
            sizes.append(memoryview(data).nbytes)
        put(self, place, data)

    monkeypatch.setattr(SharedFile, "put", measured)

    def run(own: SymbolicModel) -> None:
        write_state_values(tmp_path / "all.npz", own, found.at(part == own.communicator.rank))

    in_parts(model, 3, run, owners)
    # Four arrays of elements of 8 bytes, in rounds of four states each.
    assert max(sizes) == 4 * 8 and sum(sizes) == 4 * 8 * model.n_states * 2 // 3
