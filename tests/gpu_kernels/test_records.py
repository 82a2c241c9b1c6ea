"""Records of tiles: the widths of their fields at the borders."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_kernels import Device
from gpu_kernels.compressed.tiles import pack_columns, pack_terms
from tests.gpu_kernels.devices import to_numpy


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("largest", [0, 1, 2**16 - 1, 2**16, 2**16 + 1, 2**31 - 1])
@pytest.mark.parametrize("field", ["slot", "value"])
def test_terms_keep_their_fields_at_the_borders_of_16_bits(
    device: Device, bits: int, largest: int, field: str
) -> None:
    xp = device.xp
    fields = {"slot": xp.array([3, 0, 5]), "value": xp.array([1, 7, 0])}
    fields[field] = xp.array([largest, 0, 1])
    shift = xp.array([-4, 0, 2**31 - 1])
    packed, term_bits = pack_terms(device, shift, fields["slot"], fields["value"], bits)
    words = to_numpy(packed)
    assert term_bits == (16 if largest < 2**16 else 32)
    # As the kernels read them: the shift, then slot and value number, unsigned if they are short.
    at = bits // 32
    shifts = np.ascontiguousarray(words[:, :at]).view(f"i{bits // 8}")[:, 0]
    np.testing.assert_array_equal(shifts, to_numpy(shift))
    parts = np.ascontiguousarray(words[:, at:]).view("u2" if term_bits == 16 else "i4")
    np.testing.assert_array_equal(parts[:, 0], to_numpy(fields["slot"]))
    np.testing.assert_array_equal(parts[:, 1], to_numpy(fields["value"]))


def test_records_hold_wide_members_whole(device: Device) -> None:
    wide = device.xp.array([2**40 + 7, -1])
    words = to_numpy(pack_columns(device, [(wide, 64), (device.xp.array([5, 6]), 32)]))
    assert words.shape == (2, 3)
    np.testing.assert_array_equal(np.ascontiguousarray(words[:, :2]).view(np.int64)[:, 0], to_numpy(wide))
    assert words[:, 2].tolist() == [5, 6]
