"""Symbolic files that are damaged or hostile are told, never more."""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid.models.interchange import InterchangeError, read_model, targets_of, write_model
from hybrid.models.interchange.symbolic import read_symbolic, write_symbolic
from hybrid.models.interchange.symbolic_header import _FIXED, MAGIC, VERSION, file_bytes, file_parts
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.value_diagrams import Forest
from tests.builders.models import build
from tests.builders.symbolic_files import CTMC, DTMC, MDP, round_trip
from tests.exploring import rounds

Files = dict[str, tuple[bytes, SymbolicModel]]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """The bytes and the model of a file of every kind."""
    folder = tmp_path_factory.mktemp("symbolic")
    found = {}
    for name, text in (("ctmc", CTMC), ("mdp", MDP), ("dtmc", DTMC)):
        model = round_trip(build(text), folder)
        found[name] = (folder / "m.dd").read_bytes(), model
    return found


def equal(a: SymbolicModel, b: SymbolicModel) -> bool:
    return a.n_states == b.n_states and all(
        a.layer_transitions(i).same_as(b.layer_transitions(i)) for i in range(len(a.layers))
    )


def sealed(content: bytes) -> bytes:
    """Return a file with the lengths and the checksum that its bytes have."""
    place = len(MAGIC)
    version, text, _, _ = _FIXED.unpack_from(content, place)
    rest = content[place + _FIXED.size :]
    return MAGIC + _FIXED.pack(version, text, len(rest) - text, hashlib.sha256(rest).digest()) + rest


def test_flipped_bytes_are_noticed(files: Files, tmp_path: Path, rng: np.random.Generator) -> None:
    content, _ = files["ctmc"]
    for _ in range(rounds(300)):
        damaged = bytearray(content)
        for place in rng.integers(0, len(content), rng.integers(1, 4)).tolist():
            damaged[place] ^= int(rng.integers(1, 256))
        if bytes(damaged) == content:
            continue
        (tmp_path / "x.dd").write_bytes(damaged)
        with pytest.raises(InterchangeError, match="x.dd: "):
            read_symbolic(tmp_path / "x.dd")


@pytest.mark.parametrize("kind", ["ctmc", "mdp", "dtmc"])
@pytest.mark.parametrize("what", ["header", "stream", "arrays"])
def test_flipped_bytes_below_a_right_checksum(
    kind: str,
    what: str,
    files: Files,
    tmp_path: Path,
    rng: np.random.Generator,
) -> None:
    """Where the checksum does not help, the checks do: a fault that is told, or a model all the same."""
    content, _ = files[kind]
    start = len(MAGIC) + _FIXED.size
    text = _FIXED.unpack_from(content, len(MAGIC))[1]
    refused = 0
    for _ in range(rounds(60)):
        damaged = bytearray(content)
        if what == "arrays":
            raw = bytearray(lzma.decompress(content[start + text :]))
            raw[int(rng.integers(0, len(raw)))] ^= 1 << int(rng.integers(0, 8))
            damaged[start + text :] = lzma.compress(bytes(raw))
        else:
            span = (start, start + text) if what == "header" else (start + text, len(content))
            damaged[int(rng.integers(*span))] = int(rng.choice(list(b'0123456789"[]{},.-eabtrue\x00\xff')))
        (tmp_path / "x.dd").write_bytes(sealed(bytes(damaged)))
        try:
            assert read_symbolic(tmp_path / "x.dd").n_states > 0
        except InterchangeError as error:
            refused += "x.dd: " in str(error)
    assert refused > rounds(60) // 6


def test_cut_files(files: Files, tmp_path: Path) -> None:
    content, _ = files["dtmc"]
    for size in (0, 5, len(MAGIC), len(MAGIC) + 20, len(content) // 2, len(content) - 1):
        (tmp_path / "x.dd").write_bytes(content[:size])
        with pytest.raises(InterchangeError, match="x.dd: "):
            read_symbolic(tmp_path / "x.dd")
    (tmp_path / "x.dd").write_bytes(content + b"more")
    with pytest.raises(InterchangeError, match="cut short or damaged"):
        read_symbolic(tmp_path / "x.dd")
    with pytest.raises(InterchangeError, match="cannot be read: .*; check the path"):
        read_model(tmp_path / "none.dd")
    with pytest.raises(InterchangeError, match="cannot be written"):
        write_model(build(DTMC), targets_of(tmp_path / "no" / "folder.dd", 0))


def test_another_version(files: Files, tmp_path: Path) -> None:
    content = bytearray(files["dtmc"][0])
    content[len(MAGIC)] = VERSION + 1
    (tmp_path / "x.dd").write_bytes(content)
    with pytest.raises(InterchangeError, match=f"expected version {VERSION}, got {VERSION + 1}"):
        read_symbolic(tmp_path / "x.dd")


Change = Callable[[dict[str, Any], dict[str, np.ndarray]], None]


def _set(key: str, value: Any) -> Change:
    return lambda header, arrays: header.__setitem__(key, value)


def _at(array: str, place: int, value: float) -> Change:
    return lambda header, arrays: arrays[array].__setitem__(place, value)


def _matrix_is_states(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    header["layers"][0][0][0] = header["sets"][1]


def _states_are_matrix(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    header["sets"][1] = header["layers"][0][0][0]


def _initial_is_nothing(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    arrays["roots"][header["sets"][0]] = np.flatnonzero(arrays["values"] == 0.0)[0]


def _valued(old: float, new: float) -> Change:
    def change(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        arrays["values"][arrays["values"] == old] = new

    return change


def _repeated(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    arrays["low"][1], arrays["high"][1] = arrays["low"][0], arrays["high"][0]


def _forward(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    arrays["high"][0] = len(arrays["values"]) + len(arrays["low"]) - 1


def _tests_nothing(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    arrays["high"][0] = arrays["low"][0]


def _circle(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    arrays["low"][3] = len(arrays["values"]) + 3


HOSTILE: dict[str, tuple[Change, str]] = {
    "kind": (_set("type", "pta"), "type: expected one of"),
    "variable of text": (_set("variables", [["x", "0", 9, False]]), "expected a bound of 62 bits"),
    "empty range": (_set("variables", [["x", 5, 3, False]]), "expected a range"),
    "huge variable": (_set("variables", [["x", 0, 1 << 70, False]]), "expected a bound of 62 bits"),
    "too many bits": (
        _set("variables", [[f"x{i}", 0, 1 << 60, False] for i in range(99)]),
        "same in 'order'",
    ),
    "other variables": (_set("order", ["x", "x"]), "same in 'order'"),
    "other bits": (
        lambda h, a: h["variables"].__setitem__(1, ["x", 0, 99, False]),
        "bits, as the variables have",
    ),
    "smaller range": (lambda h, a: h["variables"].__setitem__(1, ["x", 0, 8, False]), "variables' ranges"),
    "no function": (_set("sets", [0, 1, 10**9]), "number of a function"),
    "a function that is true": (_set("sets", [0, True, 0]), "number of a function"),
    "units": (lambda h, a: h["layers"][0][0].__setitem__(1, -1), "expected units"),
    "units beyond those of first order": (
        lambda h, a: h["layers"][0][0].__setitem__(1, 2.0**26 + 1),
        "expected units from 0 to 2.26",
    ),
    "label init": (_set("labels", {"init": 0}), "other than init"),
    "label of quotes": (_set("labels", {'a"b': 0}), "without quotes"),
    "no layers": (_set("layers", []), "layers: expected one, "),
    "constants": (_set("constants", {"n": "__import__('os')"}), "constants.n: expected a number"),
    "matrix without entries": (_matrix_is_states, "expected entries in the rows|add up to 1|successors"),
    "states of columns": (_states_are_matrix, "expected a set of states"),
    "no initial state": (_initial_is_nothing, "expected an initial state"),
    "value twice": (_valued(0.3, 0.0), "ascend"),
    "value nan": (_valued(0.3, float("nan")), "finite values"),
    "other value": (_valued(0.3, 0.29), "expected rows that add up to 1"),
    "levels": (_at("levels", 0, 1 << 62), "as many nodes as the levels"),
    "levels below zero": (_at("levels", 0, -5), "as many nodes as the levels"),
    "a node twice": (_repeated, "node 1: expected nodes that ascend"),
    "forward reference": (_forward, "node 0: expected then children on lower levels"),
    "a node that tests nothing": (_tests_nothing, "node 0: expected two different children"),
    "circle": (_circle, "node 3: expected else children on lower levels"),
    "before the leaves": (_at("low", 0, -1), "else children"),
    "root beyond": (_at("roots", 0, 1 << 40), "begin at a node"),
    "numbering": (lambda h, a: a.__setitem__("numbering", np.zeros(4, dtype=np.int64)), "every state once"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_told(name: str, files: Files, tmp_path: Path) -> None:
    change, message = HOSTILE[name]
    given, forest, _ = file_parts(files["dtmc"][0])
    header = given.value
    arrays = {key: np.array(getattr(forest, key)) for key in ("values", "levels", "low", "high", "roots")}
    change(header, arrays)
    numbering = arrays.pop("numbering", None)
    (tmp_path / "x.dd").write_bytes(file_bytes(header, Forest(**arrays), numbering))
    with pytest.raises(InterchangeError, match=f"x.dd: .*({message})"):
        read_symbolic(tmp_path / "x.dd")


def rewritten(content: bytes, text: bytes, raw: bytes | None = None) -> bytes:
    """Return a file with another header, and other arrays."""
    start = len(MAGIC) + _FIXED.size
    data = (
        content[start + _FIXED.unpack_from(content, len(MAGIC))[1] :] if raw is None else lzma.compress(raw)
    )
    checksum = hashlib.sha256(text + data).digest()
    return MAGIC + _FIXED.pack(VERSION, len(text), len(data), checksum) + text + data


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"[" * 100_000, "too many brackets inside each other"),
        (b"[]", "header: expected an object, got an array"),
        (b'{"a":1,"a":2}', "the key 'a' stands twice"),
        (b'{"a":NaN}', "NaN"),
        (b'{"a":' + b"9" * 10_000 + b"}", "header: expected a JSON text"),
        (b"\xff\xfe", "header: expected a JSON text in UTF-8"),
        (b"{}", "header: expected an entry 'sizes'"),
        (b'{"sizes":{"values":1,"bits":1,"nodes":1e9,"roots":1}}', "sizes.nodes: expected an integer"),
        (
            b'{"sizes":{"values":1,"bits":1,"nodes":99999999999,"roots":1}}',
            "sizes.nodes: expected an integer",
        ),
        (b'{"sizes":{"values":1,"bits":1,"nodes":16000000,"roots":1}}', "expected arrays of|memory"),
        (b'{"sizes":{"values":0,"bits":0,"nodes":0,"roots":0}}', "expected arrays of 0 bytes, got more"),
    ],
)
def test_hostile_headers(text: bytes, message: str, files: Files, tmp_path: Path) -> None:
    (tmp_path / "x.dd").write_bytes(rewritten(files["dtmc"][0], text))
    with pytest.raises((InterchangeError, MemoryError), match=message):
        read_symbolic(tmp_path / "x.dd")


def test_arrays_that_unpack_to_more_are_not_unpacked(files: Files, tmp_path: Path) -> None:
    """Many megabytes of zeros are few kilobytes: what the header does not name is never made."""
    text = json.dumps({"sizes": {"values": 1, "bits": 1, "nodes": 1, "roots": 1}}).encode()
    (tmp_path / "x.dd").write_bytes(rewritten(files["dtmc"][0], text, bytes(1 << 24)))
    with pytest.raises(InterchangeError, match="expected arrays of 32 bytes, got more"):
        read_symbolic(tmp_path / "x.dd")


def test_sums_of_rows_that_are_no_diagram(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file may name a matrix whose row sums take exponentially many values: given up, and never written."""
    monkeypatch.setattr("hybrid.models.interchange.explicit_model._MOST_NODES", 20)
    (tmp_path / "x.dd").write_bytes(files["ctmc"][0])
    with pytest.raises(InterchangeError, match="x.dd: the sums of the rows are too large"):
        read_symbolic(tmp_path / "x.dd")
    with pytest.raises(InterchangeError, match="y.dd: the sums of the rows are too large"):
        write_symbolic(files["ctmc"][1], tmp_path / "y.dd")
    assert not (tmp_path / "y.dd").exists()
