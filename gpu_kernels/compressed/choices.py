"""Value iteration with the matrices of all layers in tiles: gains and launches (cuda/choices.cu)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gpu_kernels.compressed.steps import NULL, ChoiceStep, step_macros
from gpu_kernels.compressed.tiles import TileMatrix, Tuning
from gpu_kernels.runtime._launch import blocks_for, check_vector, index_type, loop_bits, macros
from gpu_kernels.runtime.compile_queue import Module
from gpu_kernels.runtime.device import Device

Array = Any

_THREADS = 256
_MOST_BLOCKS = 1 << 16
_MOST_MARKS = 64

_LIKELY_PARTS = (
    ("MEASURE",),
    ("CHOOSE",),
    ("POLICY", "MEASURE"),
    ("POLICY",),
    ("SHAPE", "MEASURE"),
    ("POLICY", "SHAPE", "MEASURE"),
)
"""Of the steps of a solution: iterations, a policy, its equations, and the check of bounds."""


@dataclass(frozen=True, eq=False)
class ChoiceGains:
    """What choices are worth by themselves; states with the same worth in all layers share a row.

    Attributes
    ----------
    bits : int
        Width of the codes: 8, 16 or 32; 0 if the tables have one row.
    codes : ndarray, shape (n,), uint8, uint16 or uint32, or None
        Row of every state.
    gains : ndarray, shape (rows, 2 L + 1), float64
        For each layer the worth of a choice with entries, then of one without entries (the infinity that
        never wins where there is none), then the best of the latter.
    blank : ndarray, shape (rows, 2 L + 1), float64
        The same with zeros in place of finite numbers.
    factors : ndarray, shape (rows, L), float64, or None
        Factors of the products.
    uniform : int
        Bit l says that column l of `gains` has one value only; for layers l < 64.
    """

    bits: int
    codes: Array | None
    gains: Array
    blank: Array
    factors: Array | None
    uniform: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        arrays = (self.codes, self.gains, self.blank, self.factors)
        return sum(int(a.nbytes) for a in arrays if a is not None)

    def macros(self) -> dict[str, int]:
        """Return the macros of the tables."""
        return {"GAIN_BITS": self.bits, "FACTORS": int(self.factors is not None)}

    def tables(self, plain: bool) -> tuple[Any, Any]:
        """Return codes and gains as kernel arguments."""
        return NULL if self.codes is None else self.codes, self.blank if plain else self.gains


def run_choices(
    device: Device,
    matrix: TileMatrix,
    gains: ChoiceGains,
    step: ChoiceStep,
    x: Array,
    out: Array,
    others: Array | None = None,
    part: Literal["all", "early", "late"] = "all",
) -> None:
    """Queue a step of value iteration over all states.

    Parameters
    ----------
    device : Device
    matrix : TileMatrix
        With marks.
    gains : ChoiceGains
    step : ChoiceStep
    x, out : ndarray, shape (n,), float64
        On the device; they must not overlap.
    others, part
        As for :func:`gpu_kernels.run_tiles`; the columns behind the n own ones are elements of `others`.

    Raises
    ------
    TypeError, ValueError
        If an operand has the wrong type or shape or lies elsewhere, or the tiles have no marks.

    Notes
    -----
    Synchronises: no. One launch, and a second one if some rows belong to no group. Time: O(transitions).
    """
    marks = _marks_of(matrix)
    step.check(device, matrix.n_rows, x, out)
    _check_gains(device, matrix, gains)
    halo: tuple[Any, ...] = ()
    options = dict(**gains.macros(), **step.macros())
    behind = matrix.n_columns - matrix.n_rows
    if others is not None:
        check_vector(device, others, behind, "others")
        if part != "early":
            options["HALO"] = 1
            halo = others, index_type(matrix.index_bits)(len(x))
    elif behind:
        raise ValueError(f"others: expected the elements of {behind} columns behind the own ones")
    special = _specialised(matrix, **options)
    codes, table = gains.tables(step.plain)
    threads = matrix.tuning.threads
    begin, end = matrix.part(part)
    if begin < end:
        kernel = device.kernel("choices.cu", "step_choices", special)
        factors = NULL if gains.factors is None else gains.factors
        arguments = (
            matrix.items[begin:end], matrix.term_ptr, matrix.round_cell, matrix.cells, matrix.codes, marks,
            matrix.terms, matrix.values, matrix.group_row, matrix.base, np.int32(matrix.place_words), codes,
            table, factors, np.uint64(gains.uniform), *step.arguments(), x, out, *halo,
        )  # fmt: skip
        kernel((end - begin,), (threads,), arguments, shared_mem=matrix.shared_bytes)
    if matrix.gap_rows and part != "late":
        kernel = device.kernel("choices.cu", "step_choice_gaps", special)
        gaps = index_type(matrix.index_bits)(len(matrix.gap_begin))
        arguments = (matrix.gap_begin, matrix.gap_ptr, gaps, codes, table, *step.arguments(), x, out)
        kernel((blocks_for(matrix.gap_rows, threads),), (threads,), arguments)


def likely_modules(
    layers: int, tuning: Tuning, unit: int, index_bits: int, maximise: bool
) -> tuple[Module, ...]:
    """Return what a solution over layers is likely to launch, for :func:`gpu_kernels.compile_as_well`.

    Parameters
    ----------
    layers : int
    tuning : Tuning
    unit : int
        Term numbers that a lane reads at once.
    index_bits : int
    maximise : bool

    Returns
    -------
    tuple of (str, str, dict)
        Of tiles with a byte a term and one round, and gains with a byte a state.
    """
    tiles = {
        "LAYERS": layers, "SCALED": 0, "THREADS": tuning.threads, "MIN_BLOCKS": tuning.min_blocks,
        "MEMBERS": tuning.members, "LOOK_UPS": 1, "ROUNDS": 0, "INDEX_BITS": index_bits, "CODE_BITS": 8,
        "TERM_BITS": 16, "UNIT": unit, "FACTORS": 0,
    }  # fmt: skip
    marks = {**tiles, "GAIN_BITS": 0, **step_macros(True, ())}
    rows = {"DIAGONAL_BITS": 8, "INDEX_BITS": index_bits}
    steps = (
        ("choices.cu", "step_choices", {**tiles, "GAIN_BITS": 8, **step_macros(maximise, parts)})
        for parts in _LIKELY_PARTS
    )
    return (
        ("choices.cu", "mark_entries", marks),
        ("idr.cu", "aim", {**rows, "ANCHORED": 0}),
        ("vector.cu", "relax_rows", {**rows, "MODE": 1, "RIGHT_BITS": 64}),
        *steps,
    )


def mark_entries(device: Device, matrix: TileMatrix) -> Array:
    """Return which layers have entries in each row: bit l for layer l, shape (n,), uint64.

    Parameters
    ----------
    device : Device
    matrix : TileMatrix
        The matrices of all layers.

    Returns
    -------
    array, shape (n,), uint64
        On the device.

    Raises
    ------
    ValueError
        If there are more than 64 layers, or the tiles have no marks.

    Notes
    -----
    Synchronises: no.
    """
    if matrix.layers > _MOST_MARKS:
        raise ValueError(f"matrix: expected at most {_MOST_MARKS} layers, got {matrix.layers}")
    marks, found = _marks_of(matrix), device.xp.zeros(matrix.n_rows, np.uint64)
    if len(matrix.items):
        no_step = {"GAIN_BITS": 0, "FACTORS": 0, **ChoiceStep(True).macros()}
        kernel = device.kernel("choices.cu", "mark_entries", _specialised(matrix, **no_step))
        cells = (matrix.round_cell, matrix.cells, matrix.codes, marks)
        kernel((len(matrix.items),), (_THREADS,), (matrix.items, *cells, matrix.group_row, found))
    return found


def finish_choices(device: Device, step: ChoiceStep, x: Array, out: Array, wide: bool = False) -> None:
    """Queue ``out = scale * out + shape`` and the measurement, for rows whose best has been made before.

    Parameters
    ----------
    device : Device
    step : ChoiceStep
        Its policy and chosen layers are left alone.
    x, out : ndarray, shape (n,), float64
        They must not overlap; out is changed in place.
    wide : bool
        Use 64-bit indices although 32 bits would do.

    Notes
    -----
    Synchronises: no.
    """
    size = len(out)
    step.check(device, size, x, out)
    if size == 0:
        return
    bits = loop_bits(size, _MOST_BLOCKS, _THREADS, wide)
    only = ChoiceStep(step.maximise, step.scale, shape=step.shape, state=step.state)
    options = macros(
        INDEX_BITS=bits, CODE_BITS=8, TERM_BITS=16, UNIT=2, LAYERS=1, SCALED=0, THREADS=_THREADS,
        MIN_BLOCKS=1, MEMBERS=1, LOOK_UPS=1, ROUNDS=0, GAIN_BITS=0, FACTORS=0, **only.macros(),
    )  # fmt: skip
    kernel = device.kernel("choices.cu", "finish_choices", options)
    blocks = min(blocks_for(size, _THREADS), _MOST_BLOCKS)
    kernel((blocks,), (_THREADS,), (index_type(bits)(size), *only.arguments(), x, out))


def _marks_of(matrix: TileMatrix) -> Array:
    """Return the marks of tiles of layers."""
    if matrix.marks is None:
        raise ValueError("matrix: expected tiles of layers, with marks, got those of a single matrix")
    return matrix.marks


def _specialised(matrix: TileMatrix, **others: int) -> Any:
    """Return the specialisation of kernels for the tiles of layers."""
    tuning = matrix.tuning
    return macros(
        LAYERS=matrix.layers, SCALED=0, THREADS=tuning.threads, MIN_BLOCKS=tuning.min_blocks,
        MEMBERS=tuning.members, LOOK_UPS=matrix.look_ups, ROUNDS=int(matrix.many_rounds), **matrix.macros(),
        **others,
    )  # fmt: skip


def _check_gains(device: Device, matrix: TileMatrix, gains: ChoiceGains) -> None:
    """Refuse tables of another system."""
    width = 2 * matrix.layers + 1
    for name, table, columns in (
        ("gains", gains.gains, width),
        ("blank", gains.blank, width),
        ("factors", gains.factors, matrix.layers),
    ):
        if table is None:
            continue
        if table.dtype != np.float64 or table.ndim != 2 or table.shape[1] != columns or not len(table):
            raise ValueError(
                f"{name}: expected a table of float64 with {columns} columns, got {table.dtype} {table.shape}"
            )
    if gains.bits == 0:
        return
    if gains.bits not in (8, 16, 32) or gains.codes is None:
        raise ValueError(f"gains: expected codes of 8, 16 or 32 bits or none, got {gains.bits} bits")
    check_vector(device, gains.codes, matrix.n_rows, "codes", np.dtype(f"u{gains.bits // 8}"))
