"""The files of a folder of checkpoints: written whole or not at all, checked when they are read.

A solution has a description, ``NAME.json``, and a file of vectors a process, ``NAME.GENERATION.PROCESS.bin``:
one vector after the other, doubles with the lowest byte first. The description is put in its place last, in
one step, and files of older generations go after that. Whenever a process is killed, what the description
names is there.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import CheckpointError
from hybrid.matrix.parts.plan import matrix_digest
from mtbdd.build.model import SymbolicModel
from mtbdd.offset.expansion import expand
from mtbdd.offset.states import StateIndex, index_states

# Identity of a checkpoint: digests of models, properties, sets of states.


def model_digest(model: SymbolicModel) -> str:
    """Return a digest of all that answers depend on: matrices, labels, rewards, the text but for its file.

    Time: O(nodes); of models without a text O(states) for every structure of rewards.
    """
    whole = model.whole
    digest = hashlib.sha256(matrix_digest(whole))
    digest.update(repr(replace(whole.source, file="")).encode())
    for name, states in sorted(whole.translator.labels.items()):
        digest.update(name.encode())
        digest.update(states_digest(index_states(whole.manager, states)).encode())
    for reward in () if whole.given is None else whole.given.rewards:
        digest.update(repr(reward.name).encode())
        for term in (reward.states, *reward.choices):
            digest.update(b"-" if term is None else expand(term, whole.index).tobytes())
    return digest.hexdigest()


def states_digest(states: StateIndex) -> str:
    """Return a digest of the states that an index numbers.  Time: O(nodes)."""
    digest = hashlib.sha256()
    for level in (*states.low, *states.high):
        digest.update(level.tobytes() + b"|")
    return digest.hexdigest()


def text_digest(text: str) -> str:
    """Return twelve digits that identify a property."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


FORMAT = 1

CHUNK = 1 << 22
"""Elements that are written or read together."""

Chunks = Iterator[NDArray[np.float64]]


@dataclass(frozen=True)
class StoredPart:
    """A file of one process: vectors of `size` elements, with a CRC-32 of each.

    `states` is the digest of its states.
    """

    file: str
    size: int
    states: str
    checks: list[int]


@dataclass(frozen=True)
class Description:
    """A solution as it was kept, in a part for every process.

    `target` is the difference that ends the iteration, `states` the elements of each vector over all
    processes.
    """

    method: str
    target: float | None
    states: int
    is_finished: bool
    generation: int
    vectors: list[str]
    numbers: dict[str, float]
    parts: list[StoredPart]

    def text(self) -> str:
        """Return it as a file has it."""
        told = {"format": FORMAT} | asdict(self)
        return json.dumps(told | {"check": _check(told)}, indent=1)

    @classmethod
    def of(cls, text: str, path: Path) -> Description:
        """Read what a file has."""
        try:
            told = json.loads(text)
            check = told.pop("check")
            if told["format"] != FORMAT:
                raise CheckpointError(f"{path}: written by another version; {ADVICE}")
            if check != _check(told):
                raise damaged(path, "its content is not what was written")
            parts = [
                StoredPart(str(p["file"]), int(p["size"]), str(p["states"]), [int(c) for c in p["checks"]])
                for p in told["parts"]
            ]
            found = cls(
                str(told["method"]), None if told["target"] is None else float(told["target"]),
                int(told["states"]), bool(told["is_finished"]), int(told["generation"]),
                [str(name) for name in told["vectors"]],
                {str(name): float(number) for name, number in told["numbers"].items()}, parts,
            )  # fmt: skip
        except (ValueError, KeyError, TypeError, AttributeError) as fault:
            if isinstance(fault, CheckpointError):
                raise
            raise damaged(path, f"expected a description, got something else ({fault})") from None
        if not parts or sum(part.size for part in parts) != found.states:
            raise damaged(path, f"expected files with {found.states} elements of a vector in all")
        for part in parts:
            if Path(part.file).name != part.file or len(part.checks) != len(found.vectors) or part.size < 0:
                raise damaged(path, f"expected files beside it with {len(found.vectors)} vectors each")
        return found


ADVICE = "give another folder, or remove this one to begin anew"


def _check(told: dict[str, Any]) -> int:
    """Return the CRC-32 of a description."""
    return zlib.crc32(json.dumps(told, sort_keys=True).encode())


def damaged(path: Path, why: str) -> CheckpointError:
    """Return the error for a file that is not as it was written."""
    return CheckpointError(f"{path}: damaged: {why}; {ADVICE}")


def put_text(path: Path, text: str) -> None:
    """Put a file in its place in one step."""
    beside = path.with_name(f"{path.name}.new")
    with beside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    _sync(path.parent)


def write_vectors(path: Path, vectors: Iterable[Chunks]) -> list[int]:
    """Write vectors one after the other; return a check of each."""
    checks = []
    with path.open("wb") as file:
        for chunks in vectors:
            check = 0
            for chunk in chunks:
                own = np.ascontiguousarray(chunk, dtype="<f8").data
                check = zlib.crc32(own, check)
                file.write(own)
            checks.append(check)
        file.flush()
        os.fsync(file.fileno())
    return checks


@dataclass(frozen=True)
class StoredVector:
    """A vector in a file, not read yet: `size` elements behind `begin` others.

    It was written with the CRC-32 `check`.
    """

    path: Path
    begin: int
    size: int
    check: int

    def chunks(self) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Yield its chunks with their places; refuse it at its end if it is not what was written."""
        found = 0
        with self.path.open("rb") as file:
            file.seek(8 * self.begin)
            for begin in range(0, self.size, CHUNK):
                place = slice(begin, min(begin + CHUNK, self.size))
                chunk = np.fromfile(file, "<f8", place.stop - begin)
                found = zlib.crc32(chunk.data, found)
                yield place, chunk
        if found != self.check:
            raise damaged(self.path, "its content is not what was written")


def vectors_of(folder: Path, part: StoredPart, names: list[str]) -> dict[str, StoredVector]:
    """Return the vectors of a file by name; refuse a file that is missing or has another size."""
    path = folder / part.file
    expected = 8 * part.size * len(names)
    try:
        found = path.stat().st_size
    except OSError:
        raise damaged(path, "expected it to be there") from None
    if found != expected:
        raise damaged(path, f"expected {expected} bytes, got {found}")
    pairs = enumerate(zip(names, part.checks, strict=True))
    return {name: StoredVector(path, k * part.size, part.size, check) for k, (name, check) in pairs}


def remove_others(folder: Path, name: str, kept: Mapping[str, object]) -> None:
    """Remove files of a solution's vectors but those kept, by name; what cannot be removed stays."""
    for path in folder.glob(f"{name}.*.bin"):
        if path.name not in kept:
            path.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    """Have a change of a folder's entries on the disk, where the system can."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    except OSError:
        pass
    finally:
        os.close(number)
