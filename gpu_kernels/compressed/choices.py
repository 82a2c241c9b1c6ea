"""Value iteration with all layers in tiles, or choices written out (cuda/choices.cu, cuda/choice_rows.cu)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gpu_kernels.runtime._launch import blocks_for, check_vector, index_bits, index_type, loop_bits, macros
from gpu_kernels.runtime.device import Device

if TYPE_CHECKING:
    from gpu_kernels.compressed.steps import ChoiceStep
    from gpu_kernels.compressed.tiles import TileMatrix, Tuning
    from gpu_kernels.explicit.rows import ScanPlan
    from gpu_kernels.runtime.compile_queue import Module

# Value iteration with all choices written out: arrays and launch (cuda/choice_rows.cu).

Array = Any

_THREADS = 256
_LANES = 32


@dataclass(frozen=True, eq=False)
class ChoiceRows:
    """Choices in compressed sparse rows, one row a choice; pointers from states to choices.

    All arrays lie on the host, or all on a device, as `to_device` puts them there.

    Attributes
    ----------
    choice_ptr : ndarray, shape (n + 1,), int32 or int64
        First choice of every state, and the end.
    offsets : ndarray, shape (choices + 1,), like choice_ptr
        First transition of every choice, and the end.
    columns : ndarray, shape (transitions,), int32 or int64
        Targets; int32 on a device.
    values : ndarray, shape (transitions,), float64, or None
        Probabilities; None if they are not requested.
    gains : ndarray, shape (choices,), float64, or None
        Reward of each choice; None if it is not requested.
    layers : ndarray, shape (choices,), unsigned integers
        The layer that each choice comes from; uint16 on a device.
    state_lanes, choice_lanes : int
        Threads of a state, and of a choice: powers of two up to 32, the latter not greater.
    plan : ScanPlan or None
        Flags where choices begin: a step then makes all products, scans them and takes the first sum of each
        choice ([BESW10]'s M2), instead of a sum a choice (its M1). See `scanned`.
    products : ndarray, shape (transitions,), float64, or None
        Scratch of the scan.
    """

    choice_ptr: Array
    offsets: Array
    columns: Array
    values: Array
    gains: Array
    layers: Array
    state_lanes: int = 1
    choice_lanes: int = 1
    plan: ScanPlan | None = None
    products: Array = None

    def of_policy(self, policy: Array) -> tuple[Array, Array, Array]:
        """Return the transitions of a policy's choices, on the host: states, targets, probabilities.

        Parameters
        ----------
        policy : ndarray, shape (n,), uint16
            The layer of every state's choice; states whose number is that of none have no transition.

        Notes
        -----
        Time: O(transitions).
        """
        owner = np.repeat(np.arange(self.size), np.diff(self.choice_ptr))
        chosen = np.repeat(self.layers == policy[owner], np.diff(self.offsets))
        states = np.repeat(owner, np.diff(self.offsets))
        return states[chosen], self.columns[chosen], self.values[chosen]

    def to_device(self, device: Device, wide: bool = False) -> ChoiceRows:
        """Return the choices copied to a device, with the narrowest indices, and with a launch shape.

        A state gets about as many threads as it has choices on average, and several for each choice where
        these have more than eight transitions.

        Parameters
        ----------
        device : Device
        wide : bool
            Use 64-bit indices although 32 bits would do.

        Raises
        ------
        ValueError
            If pointers and arrays do not belong together, or there are 2**31 states or more.
        """
        states, choices, entries = self.size, len(self.offsets) - 1, len(self.columns)
        if (
            states < 0
            or choices < 0
            or int(self.choice_ptr[-1]) != choices
            or int(self.offsets[-1]) != entries
        ):
            raise ValueError(
                "choice_ptr and offsets: expected the numbers of choices and transitions at their ends"
            )
        if len(self.values) != entries or not len(self.gains) == len(self.layers) == choices:
            raise ValueError("values, gains and layers: expected one a transition, and one a choice")
        if states >= 2**31:
            raise ValueError(f"columns have 32 bits, so that {states} states are too many")
        index = index_type(index_bits(max(states, choices, entries), wide))
        xp = device.xp
        many, long = choices / max(states, 1), entries / max(choices, 1)
        choice_lanes = _power(long / 4.0) if long > 8.0 else 1
        return ChoiceRows(
            xp.asarray(self.choice_ptr, dtype=index),
            xp.asarray(self.offsets, dtype=index),
            xp.asarray(self.columns, dtype=np.int32),
            xp.asarray(self.values, dtype=np.float64),
            xp.asarray(self.gains, dtype=np.float64),
            xp.asarray(self.layers, dtype=np.uint16),
            min(_power(many) * choice_lanes, _LANES),
            choice_lanes,
        )

    def scanned(self, device: Device) -> ChoiceRows:
        """Return the choices on a device with what steps by a segmented scan need ([BESW10] §II, method M2).

        Notes
        -----
        12 to 13 bytes more a transition. Synchronises: no.
        """
        from gpu_kernels.explicit.rows import ScanPlan

        xp, entries = device.xp, len(self.columns)
        flags = xp.zeros(entries, np.uint8)
        starts = self.offsets[:-1]
        flags[starts[starts < entries]] = 1
        plan = ScanPlan.create(device, flags)
        return replace(self, choice_lanes=1, plan=plan, products=xp.empty(entries))

    @property
    def size(self) -> int:
        """States."""
        return len(self.choice_ptr) - 1

    @property
    def matrix_bytes(self) -> int:
        """Bytes of transitions and pointers."""
        return sum(int(a.nbytes) for a in (self.choice_ptr, self.offsets, self.columns, self.values))

    @property
    def operand_bytes(self) -> int:
        """Bytes of gains and layers."""
        return int(self.gains.nbytes + self.layers.nbytes)

    @property
    def nbytes(self) -> int:
        """Bytes that a step reads: matrices, pointers and gains, and what a scan needs."""
        scan = 0 if self.plan is None else self.plan.nbytes + int(self.products.nbytes)
        return self.matrix_bytes + int(self.gains.nbytes) + scan


def _power(count: float) -> int:
    """Return the power of two up to 32 that is nearest from below, at least 1."""
    return 1 << min(5, max(0, int(np.floor(np.log2(max(count, 1.0))))))


def run_choice_rows(device: Device, rows: ChoiceRows, step: ChoiceStep, x: Array, out: Array) -> None:
    """Queue a step of value iteration over all states.

    Parameters
    ----------
    device : Device
    rows : ChoiceRows
    step : ChoiceStep
    x, out : ndarray, shape (n,), float64
        On the device; they must not overlap.

    Raises
    ------
    TypeError, ValueError
        If an operand has the wrong type or shape or lies elsewhere.

    Notes
    -----
    Synchronises: no. Time: O(transitions). One launch; with a plan one more for the products, and two a level
    of the scan.
    """
    from gpu_kernels.compressed.steps import NULL

    size = rows.size
    step.check(device, size, x, out)
    lanes = rows.state_lanes, rows.choice_lanes
    if any(n not in (1, 2, 4, 8, 16, 32) for n in lanes) or lanes[1] > lanes[0]:
        raise ValueError(f"lanes: expected powers of two up to 32, a choice's not greater, got {lanes}")
    bits = 8 * int(rows.choice_ptr.dtype.itemsize)
    entries = len(rows.columns)
    check_vector(device, rows.choice_ptr, size + 1, "choice_ptr", index_type(bits))
    check_vector(device, rows.offsets, len(rows.gains) + 1, "offsets", index_type(bits))
    check_vector(device, rows.columns, entries, "columns", np.int32)
    check_vector(device, rows.values, entries, "values")
    check_vector(device, rows.layers, len(rows.gains), "layers", np.uint16)
    if size == 0:
        return
    scanned, values = int(rows.plan is not None), rows.values
    if rows.plan is not None and entries:
        special = macros(INDEX_BITS=bits, VALUE_BITS=64, SCAN_THREADS=rows.plan.threads)
        kernel = device.kernel("scan.cu", "multiply_entries", special)
        products = (index_type(bits)(entries), rows.columns, rows.values, NULL, x, rows.products)
        kernel((blocks_for(entries, _THREADS),), (_THREADS,), products)
        rows.plan.run(device, rows.products, bits == 64)
        values = rows.products
    options = macros(
        INDEX_BITS=bits, STATE_LANES=lanes[0], CHOICE_LANES=lanes[1], SCANNED=scanned, **step.macros()
    )
    kernel = device.kernel("choice_rows.cu", "step_choice_rows", options)
    arguments = (
        index_type(bits)(size), rows.choice_ptr, rows.offsets, rows.columns, values,
        NULL if step.plain else rows.gains, rows.layers, *step.arguments(), x, out,
    )  # fmt: skip
    kernel((blocks_for(size * lanes[0], _THREADS),), (_THREADS,), arguments)


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
    """Rewards of choices; states with the same rewards in all layers share a row.

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
        from gpu_kernels.compressed.steps import NULL

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
    from gpu_kernels.compressed.steps import NULL

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
    from gpu_kernels.compressed.steps import step_macros

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
    from gpu_kernels.compressed.steps import ChoiceStep

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
    from gpu_kernels.compressed.steps import ChoiceStep

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
