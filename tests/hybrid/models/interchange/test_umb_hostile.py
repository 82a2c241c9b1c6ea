"""UMB files that are damaged, lie, or ask for too much: all are refused with the place, none does harm."""

from __future__ import annotations

import gzip
import lzma
import resource
import tarfile
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.models.interchange import ExplicitModel, InterchangeError
from hybrid.models.interchange.umb import read_umb, write_umb
from tests.builders.explicit_models import example_written_out
from tests.hybrid.models.interchange.umb_helpers import archive, chain_members, index_of, put

NAN = np.array([0.25, 0.75, np.nan, 1.0]).tobytes()
STARTS = np.array([0, 2, 1, 4], dtype="<u8").tobytes()


def refused(tmp_path: Path, data: bytes) -> str:
    """The message of the error, which names the file."""
    path = put(tmp_path, data)
    with pytest.raises(InterchangeError) as caught:
        read_umb(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert len(message) < 600
    return message.removeprefix(str(path))


def words(*numbers: int) -> bytes:
    return np.array(numbers, dtype="<u8").tobytes()


@pytest.mark.parametrize(
    ("member", "content", "place"),
    [
        ("choice-to-branches.bin", STARTS, "choice-to-branches.bin[2]: expected a number not below 2"),
        ("choice-to-branches.bin", words(1, 2, 3, 4), "choice-to-branches.bin[0]: expected 0, got 1"),
        ("choice-to-branches.bin", words(0, 2, 3, 3), "choice-to-branches.bin[3]: expected 4"),
        ("choice-to-branches.bin", words(0, 2**63, 2**63 + 1, 4), "choice-to-branches.bin[1]: expected"),
        ("choice-to-branches.bin", words(0, 4), "choice-to-branches.bin: expected 32 bytes"),
        ("branch-to-target.bin", words(1, 2, 3, 0), "branch-to-target.bin[2]: expected a number from 0 to 2"),
        ("branch-to-target.bin", words(2**64 - 1, 2, 1, 0), "branch-to-target.bin[0]: expected"),
        ("branch-to-target.bin", words(0), "branch-to-target.bin: expected 32 bytes, as index.json"),
        ("branch-to-probability.bin", NAN, "branch-to-probability.bin[2]: expected a finite number"),
        ("branch-to-probability.bin", np.array([-0.5, 1.5, 1, np.inf]).tobytes(), "probability.bin[0]:"),
        ("branch-to-probability.bin", np.array([0.5, 0.5, 1, np.inf]).tobytes(), "probability.bin[3]:"),
        ("state-is-initial.bin", words(9), "state-is-initial.bin[3]: expected zeros"),
        ("state-is-initial.bin", words(3), "state-is-initial.bin: expected 1 initial states"),
        ("state-is-initial.bin", bytes(1), "state-is-initial.bin: expected 8 bytes"),
        ("state-to-choices.bin", words(0, 2, 2, 3), "state-to-choices.bin[0]: expected one choice a state"),
        ("../branch", b"", "'../branch': expected the name of a file inside"),
        ("/etc/passwd", b"", "'/etc/passwd': expected the name"),
        ("a/../../b", b"", "expected the name of a file inside"),
        ("a\\b", b"", "expected the name of a file inside"),
    ],
)  # fmt: skip
def test_members_that_are_wrong(tmp_path: Path, member: str, content: bytes, place: str) -> None:
    assert place in refused(tmp_path, archive(index_of(), chain_members(**{member: content})))


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"#states": 0}, "transition-system.#states: expected an integer from 1"),
        ({"#states": 3.0}, "#states: expected an integer"),
        ({"#states": True}, "#states: expected an integer"),
        ({"#states": 2**64}, "#states: expected an integer"),
        ({"#states": 10**400}, "#states: expected an integer"),
        ({"#states": None}, "expected an entry '#states', got none"),
        ({"#states": 4}, "state-to-choices.bin: expected the choices of 4 states"),
        ({"#choices": 4}, "choice-to-branches.bin: expected 40 bytes"),
        ({"#branches": 2**61}, "#branches: expected a number of branches that a file of"),
        ({"#initial-states": 4}, "#initial-states: expected an integer from 0 to 3"),
        ({"time": "urgent-stochastic", "#players": 1}, "Markov automata are not read"),
        ({"time": "never"}, "time: expected one of discrete, stochastic"),
        ({"time": "stochastic"}, "exit-rate-type: expected a type"),
        ({"time": "stochastic", "#players": 1}, "CTMDPs are not read"),
        ({"exit-rate-type": {"type": "double"}}, "exit-rate-type: expected"),
        ({"time": "stochastic", "exit-rate-type": {"type": "double"}}, "state-to-exit-rate.bin: expected"),
        ({"#players": 2}, "games are not read"),
        ({"#observations": 3}, "partially observable models are not read"),
        ({"branch-probability-type": None}, "branch-probability-type: expected a type, got none"),
        ({"branch-probability-type": {"type": "double-interval"}}, "intervals are not read"),
        ({"branch-probability-type": {"type": "rational-interval"}}, "intervals are not read"),
        ({"branch-probability-type": {"type": "double", "size": 32}}, "size: expected 64 bits"),
        ({"branch-probability-type": {"type": "rational", "size": 64}}, "size: expected 128 bits or a"),
        ({"branch-probability-type": {"type": "rational"}}, "probability.bin: expected 64 bytes"),
        ({"branch-probability-type": {"type": "bool"}}, "expected one of double, rational"),
        ({"branch-probability-type": "double"}, "branch-probability-type: expected an object"),
    ],
)  # fmt: skip
def test_transition_systems_that_are_wrong(tmp_path: Path, changes: dict[str, Any], place: str) -> None:
    assert place in refused(tmp_path, archive(index_of(**changes), chain_members()))


@pytest.mark.parametrize(
    ("index", "place"),
    [
        (b"[1]", "index.json: expected an object, got an array"),
        (b"{", "index.json: expected a JSON text"),
        (b"\xff", "index.json: expected a JSON text in UTF-8"),
        (b"[" * 100_000, "too many brackets"),
        (b'{"a":' * 100_000, "too many brackets"),
        (b'{"a": 1, "a": 2}', "the key 'a' stands twice"),
        (b'{"a": NaN}', "NaN is no number"),
        (b'{"a": ' + b"9" * 5000 + b"}", "index.json: expected a JSON text"),
        (b" " * (1 << 23) + b"{}", "index.json: expected at most"),
        ({"format-version": 2, "format-revision": 0}, "format-version: expected version 1"),
        ({"format-version": 0, "format-revision": 0}, "format-version: expected version 1"),
        ({"format-version": 1}, "expected an entry 'format-revision'"),
    ],
    ids=lambda value: str(value)[:20].strip(),
)
def test_indices_that_are_wrong(tmp_path: Path, index: Any, place: str) -> None:
    assert place in refused(tmp_path, archive(index, {}))


@pytest.mark.parametrize(
    ("group", "entry", "place"),
    [
        ("aps", {"../x": {}}, "expected an identifier"),
        ("aps", {"a": {"applies-to": ["choices"], "type": {"type": "bool"}}}, "applies-to: expected some of"),
        ("aps", {"a": {"applies-to": [], "type": {"type": "bool"}}}, "applies-to: expected some of states"),
        ("aps", {"a": {"applies-to": ["states"], "type": {"type": "int"}}}, "type: expected one of bool"),
        ("rewards", {"a": {"applies-to": ["players"], "type": {"type": "double"}}}, "applies-to: expected"),
        ("rewards", {"a": {"applies-to": ["states"], "type": {"type": "double-interval"}}}, "intervals are"),
        ("rewards", {"a": {"applies-to": ["states"], "type": {"type": "double"},
                           "probability-type": {"type": "double"}}}, "annotations at random are not read"),
        ("rewards", {"a": {"alias": "b", "applies-to": ["states"], "type": {"type": "double"}},
                     "b": {"applies-to": ["states"], "type": {"type": "double"}}}, "that no other has"),
        ("rewards", 3, "annotations.rewards: expected an object"),
    ],
    ids=lambda value: str(value)[:20],
)  # fmt: skip
def test_annotations_that_are_wrong(tmp_path: Path, group: str, entry: Any, place: str) -> None:
    index = index_of() | {"annotations": {group: entry}}
    assert place in refused(tmp_path, archive(index, chain_members()))


def test_rewards_that_are_no_numbers(tmp_path: Path) -> None:
    index = index_of()
    index["annotations"] = {"rewards": {"r": {"applies-to": ["states"], "type": {"type": "double"}}}}
    name = "annotations/rewards/r/states/values.bin"
    for wrong in (np.nan, np.inf, -np.inf):
        members = chain_members(**{name: np.array([0.0, -1.0, wrong]).tobytes()})
        assert f"{name}[2]: expected a finite number" in refused(tmp_path, archive(index, members))
    members = chain_members(**{name: bytes(16)})
    assert f"{name}: expected 24 bytes" in refused(tmp_path, archive(index, members))


def test_rationals_that_are_no_numbers(tmp_path: Path) -> None:
    index = index_of(**{"branch-probability-type": {"type": "rational", "size": 8192}})
    for above, below in ((1, 0), (1 << 4000, 1), (1, 1 << 4000)):
        pairs = [(1, 1), (1, 1), (above, below), (1, 1)]
        data = b"".join(a.to_bytes(512, "little") + b.to_bytes(512, "little") for a, b in pairs)
        members = chain_members(**{"branch-to-probability.bin": data})
        assert "branch-to-probability.bin[2]: expected a fraction" in refused(
            tmp_path, archive(index, members)
        )


def test_rates_beyond_the_doubles(tmp_path: Path) -> None:
    index = index_of(time="stochastic", **{"exit-rate-type": {"type": "double"}})
    for probability, rate in ((0.75, 5e-324), (1.5, 1.7e308)):
        members = chain_members() | {
            "branch-to-probability.bin": np.array([0.25, 0.75, probability, 1.0]).tobytes(),
            "state-to-exit-rate.bin": np.array([1.0, rate, 1.0]).tobytes(),
        }
        assert "branch-to-probability.bin[2]: expected a rate" in refused(tmp_path, archive(index, members))


@pytest.mark.parametrize(
    ("values", "mapping", "texts", "place"),
    [
        (b"\x02\0\0\0" * 3, words(0, 1, 2), b"ab", "actions/choices/values.bin[0]: expected a number"),
        (bytes(12), words(0, 1, 2), b"abc", "actions/choices/string-mapping.bin[2]: expected 3"),
        (bytes(12), words(0, 3, 2), b"ab", "actions/choices/string-mapping.bin[2]: expected a"),
        (bytes(12), words(0, 1, 2), b"a\xff", "choices/string-mapping.bin[1]: expected a string in"),
        (bytes(12), None, b"ab", "actions/choices/string-mapping.bin: expected where"),
        (bytes(12), words(0, 1, 2), None, "actions/choices/strings.bin: expected the strings"),
        (bytes(11), words(0, 1, 2), b"ab", "actions/choices/values.bin: expected 12 bytes"),
    ],
)  # fmt: skip
def test_actions_that_are_wrong(
    tmp_path: Path, values: bytes, mapping: bytes | None, texts: bytes | None, place: str
) -> None:
    index = index_of(**{"#players": 1, "#choice-actions": 2})
    contents = {"values": values, "string-mapping": mapping, "strings": texts}
    members = {f"actions/choices/{name}.bin": data for name, data in contents.items() if data is not None}
    assert place in refused(tmp_path, archive(index, chain_members() | members))


# ------------------------------------------------------------------ archives


def test_archives_that_end_early(tmp_path: Path) -> None:
    """At every 64th byte; at the end of a member, too, where absent arrays would mean something."""
    whole = archive(index_of(), chain_members())
    for length in range(0, len(whole) - 10240 + 512 * 10, 64):
        refused(tmp_path, whole[:length])
    for compressed in (gzip.compress(whole), lzma.compress(whole)):
        for length in range(0, len(compressed) - 1, 7):
            refused(tmp_path, compressed[:length])


def test_archives_with_wrong_checksums(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(archive(index_of(), chain_members())))
    whole[-6] ^= 1
    assert "expected gzip data, got a fault" in refused(tmp_path, bytes(whole))
    whole = bytearray(archive(index_of(), chain_members()))
    whole[20] ^= 1
    assert "checksum" in refused(tmp_path, bytes(whole))


def test_files_that_are_no_archives(tmp_path: Path) -> None:
    assert "expected a UMB file" in refused(tmp_path, b"dtmc\nmodule m\n" * 100)
    assert "expected" in refused(tmp_path, b"")
    assert "expected a member index.json" in refused(tmp_path, archive(b"", {})[10240 - 1024 :] + bytes(512))
    with pytest.raises(OSError, match="nowhere"):
        read_umb(tmp_path / "nowhere.umb")


def test_archives_without_an_index(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.umb", "w") as out:
        out.addfile(tarfile.TarInfo("state-is-initial.bin"))
    assert "expected a member index.json" in refused(tmp_path, (tmp_path / "x.umb").read_bytes())


def test_members_twice(tmp_path: Path) -> None:
    members = chain_members() | {"./branch-to-target.bin": words(0, 0, 0, 0)}
    assert "branch-to-target.bin: expected one member, got two" in refused(
        tmp_path, archive(index_of(), members)
    )


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_members_that_are_no_files(tmp_path: Path, kind: bytes) -> None:
    path = put(tmp_path, archive(index_of(), {}))
    with tarfile.open(path, "a") as out:
        info = tarfile.TarInfo("branch-to-target.bin")
        info.type, info.linkname = kind, "/etc/passwd"
        out.addfile(info)
    assert "expected a file or a folder" in refused(tmp_path, path.read_bytes())


def with_size(data: bytes, name: str, size: int) -> bytes:
    """An archive whose header of a member claims another size."""
    changed = bytearray(data)
    at = next(k for k in range(0, len(data), 512) if data[k:].startswith(name.encode() + b"\0"))
    changed[at + 124 : at + 136] = b"\x80" + size.to_bytes(11, "big")
    changed[at + 148 : at + 156] = b" " * 8
    changed[at + 148 : at + 156] = b"%06o\0 " % sum(changed[at : at + 512])
    return bytes(changed)


@pytest.fixture
def little_memory() -> Any:
    """An address space of 2 GiB more than now: what asks for a size that a file claims then fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + (2 << 30), hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_sizes_that_no_file_can_hold(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    n = 1 << 40
    index = index_of(**{"#states": n, "#choices": n, "#branches": n})
    assert "#branches: expected a number of branches that" in refused(
        tmp_path, pack(archive(index, chain_members()))
    )
    index = index_of(**{"#states": n, "#choices": n, "#branches": 4})
    data = archive(index, chain_members())
    with pytest.raises((InterchangeError, MemoryError)):
        read_umb(put(tmp_path, pack(with_size(data, "choice-to-branches.bin", 8 * (n + 1)))))
    data = with_size(archive(index_of(), chain_members()), "branch-to-target.bin", 1 << 60)
    assert "branch-to-target.bin: expected 32 bytes" in refused(tmp_path, pack(data))
    data = with_size(archive(index_of(), chain_members()), "index.json", 1 << 60)
    assert "index.json: expected at most" in refused(tmp_path, pack(data))


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(
    "pack",
    [lambda data: gzip.compress(data, 1), lambda data: lzma.compress(data, preset=0)],
    ids=["gz", "xz"],
)
def test_streams_that_grow_beyond_what_the_index_promises(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    data = pack(archive(index_of(), {"beside.bin": bytes(65 << 20)}))
    assert len(data) < 1 << 20
    assert "beside.bin: expected members of the sizes that index.json promises" in refused(tmp_path, data)
    behind = pack(archive(index_of(), chain_members()) + bytes(20 << 20))
    assert "after the end of the archive" in refused(tmp_path, behind)


def test_extended_headers_that_are_wrong(tmp_path: Path) -> None:
    for content in (b"9999999 path=x\n", b"-1 path=x\n", b"11 size=-1\n", b"x", b"12 size=1e99\n"):
        header = tarfile.TarInfo("header")
        header.type, header.size = tarfile.XHDTYPE, len(content)
        data = header.tobuf() + content + bytes(-len(content) % 512) + archive(index_of(), chain_members())
        refused(tmp_path, data)
    header.size = 1 << 30
    assert "of a header" in refused(tmp_path, header.tobuf() + bytes(10240))


@cache
def archive_of(name: str, constant: str, value: int) -> bytes:
    """An example of the project as a file that is not packed; the constant's name may be empty."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.umb"
        model = example_written_out(name, **({constant: value} if constant else {}))
        write_umb(model, path, compression=None)
        return path.read_bytes()


@settings(max_examples=400)
@given(
    st.sampled_from([("coin", "K", 1), ("tandem", "c", 3), ("herman", "", 0), ("kanban", "t", 1)]),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=6),
    st.booleans(),
)
def test_flipped_bytes_make_a_model_or_are_refused(
    tmp_path_factory: pytest.TempPathFactory,
    example: tuple[str, str, int],
    changes: list[tuple[float, int]],
    has_sum: bool,
) -> None:
    data = bytearray(archive_of(*example))
    for place, value in changes:
        data[int(place * len(data))] = value
    if has_sum:
        # Correct the sum of every header, so that faults in other fields are met, too.
        for at in range(0, len(data), 512):
            if data[at + 257 : at + 262] == b"ustar":
                data[at + 148 : at + 156] = b" " * 8
                data[at + 148 : at + 156] = b"%06o\0 " % sum(data[at : at + 512])
    path = tmp_path_factory.getbasetemp() / "flipped.umb"
    path.write_bytes(data)
    try:
        found = read_umb(path)
    except InterchangeError as error:
        assert str(path) in str(error)
        return
    assert isinstance(found, ExplicitModel)
    assert len(found.columns) == len(found.values) == found.row_starts[-1]
    assert np.isfinite(found.values).all()
    assert found.columns.size == 0 or 0 <= found.columns.min() <= found.columns.max() < found.n_states
