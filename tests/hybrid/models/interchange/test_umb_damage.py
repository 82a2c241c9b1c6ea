"""UMB files of the examples with bytes changed at random: a model comes out, or a message with the file."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.models.interchange import ExplicitModel, InterchangeError
from hybrid.models.interchange.umb import read_umb, write_umb
from tests.builders.explicit_models import example_written_out


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
