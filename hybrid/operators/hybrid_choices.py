"""Choices on hybrid matrices: one offset-labelled matrix a layer, all injected at one level."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.core.backend import BackendChoice, choose_backend
from hybrid.cpu.threads import run_in_parts
from hybrid.levels.layers import layer_curve
from hybrid.levels.policy import choose_level
from hybrid.operators.host_choices import NoMatrix, finish_on_host
from hybrid.operators.hybrid_matrix import HybridMatrix
from hybrid.operators.inject import confirm_gpu, inject_transposed
from hybrid.operators.offers import Offer
from hybrid.operators.refusal import NOTHING_TO_MULTIPLY, Refusal
from hybrid.run.options import CheckOptions
from hybrid.solvers.choice_operator import NO_CHOICE, ChoiceOperator, Quotient
from hybrid.solvers.host import HostWorkspace
from hybrid.solvers.workspace import Array, Workspace

__all__ = ["HybridChoices", "hybrid_choices"]

Vector = NDArray[np.float64]

_SAMPLE = 1 << 20  # elements that tell whether a vector has few values
_CODES = 1 << 16


@dataclass(frozen=True, eq=False)
class _Layer:
    """One layer's operands where the vectors are.

    Attributes
    ----------
    layer : int
    matrix : HybridMatrix or None
    space : Workspace or None
        The matrix's own.
    place : array or None
    codes : array, unsigned, or None
        None if every row has its own gain.
    gains, blank, factors : array, float64
        `blank` is `gains` with zeros in place of finite numbers; an empty `factors` stands for 1.
    rows : int
    """

    layer: int
    matrix: HybridMatrix | None
    space: Workspace | None
    place: Array | None
    codes: Array | None
    gains: Array
    blank: Array
    factors: Array
    rows: int

    def operand(self, values: Array) -> Array:
        """Return gains or factors row by row."""
        return values if self.codes is None else values[self.codes]


def hybrid_choices(
    offers: list[Offer],
    size: int,
    maximise: bool,
    groups: Quotient | None,
    slack: float,
    options: CheckOptions,
    refusal: Refusal | None = None,
) -> HybridChoices:
    """Inject the matrices of all offers at one level, on one backend, which the largest of them chooses.

    Parameters
    ----------
    offers, size, maximise, groups, slack
        As for `HybridChoices`.
    options : CheckOptions
    refusal : Refusal, optional
        Why a device has not taken all layers in one pass; heeded in the choice of the backend.

    Raises
    ------
    ValueError
        If the level does not exist or cannot be used.

    Notes
    -----
    The level is the one that :func:`hybrid.levels.policy.choose_level` finds on the matrices' common curve.
    """
    asked = options.matrix_backend()
    engine = choose_backend(asked)
    if refusal is not None:
        engine = refusal.applied_to(engine, asked)
    injected: dict[int, HybridMatrix] = {}
    wanted = sorted((o for o in offers if o.matrix is not None), key=lambda o: -_entries(o))
    if not wanted:
        if engine.name == "gpu":
            engine = BackendChoice("cpu", NOTHING_TO_MULTIPLY)
        return _explained(
            HybridChoices(offers, injected, size, maximise, groups, slack, engine.name), engine, options
        )
    curve = layer_curve([o.matrix for o in wanted if o.matrix is not None])
    if asked == "auto" and engine.name == "gpu":
        engine = confirm_gpu(curve.curves[0], engine)
    choice = choose_level(curve, options.level, engine.name)
    for offer, own in zip(wanted, curve.curves, strict=True):
        assert offer.matrix is not None
        transposed = partial(inject_transposed, offer.matrix, options.level, engine.name)
        matrix = HybridMatrix(
            offer.matrix, own, choice.level, choice.reason, engine.name, engine.reason, transposed
        )
        injected[offer.layer] = matrix.prepare()
    found = HybridChoices(offers, injected, size, maximise, groups, slack, engine.name)
    return _explained(found, engine, options)


def _explained(found: HybridChoices, engine: BackendChoice, options: CheckOptions) -> HybridChoices:
    """Return an operator that knows why it is where it is."""
    found.backend_reason = options.host_reason() or engine.reason
    return found


class HybridChoices(ChoiceOperator):
    """See `ChoiceOperator`.

    Parameters
    ----------
    offers : list of Offer
    injected : dict
        The matrix of every layer that has one.
    backend : str
        Theirs.
    size, maximise, groups, slack
        As for `ChoiceOperator`.

    Notes
    -----
    A step is one product a layer, into one vector that all layers share, and one pass over it.  Gains are
    held by dictionary where they have few values: one or two bytes a row.
    """

    def __init__(
        self,
        offers: list[Offer],
        injected: dict[int, HybridMatrix],
        size: int,
        maximise: bool,
        groups: Quotient | None,
        slack: float,
        backend: str,
    ) -> None:
        spaces = {layer: matrix.workspace() for layer, matrix in injected.items()}
        space: Workspace = next(iter(spaces.values())) if spaces else HostWorkspace(NoMatrix(size))
        super().__init__(size, maximise, groups, slack, space)
        self.backend = backend
        xp = space.xp
        self._layers = []
        for offer in offers:
            codes, gains, factors = _encoded(offer)
            blank = np.where(np.isfinite(gains), 0.0, gains)
            self._layers.append(
                _Layer(
                    offer.layer,
                    injected.get(offer.layer),
                    spaces.get(offer.layer),
                    None if offer.place is None else xp.asarray(_narrow(offer.place)),
                    None if codes is None else xp.asarray(codes),
                    xp.asarray(gains),
                    xp.asarray(blank),
                    xp.asarray(factors),
                    len(offer.gain),
                )
            )
        first = next((e.matrix for e in self._layers if e.matrix is not None), None)
        self.level = None if first is None else first.level
        self.nbytes = sum(m.nbytes for m in injected.values())
        arrays = [a for e in self._layers for a in (e.place, e.codes, e.gains, e.factors)]
        self.operand_bytes = sum(int(a.nbytes) for a in arrays if a is not None)
        most = max((e.rows for e in self._layers if e.matrix is not None), default=0)
        self._product = xp.empty(most)
        self._compiled = backend == "cpu"
        self._no_policy = np.zeros(0, np.uint16)
        self._no_codes = np.zeros(0, np.uint8)

    # ------------------------------------------------------------------ steps

    def _best(self, x: Array, out: Array, plain: bool, policy: Array | None) -> None:
        started = False
        for e in self._layers:
            if not started and e.place is not None:
                out.fill(self.worst)
                started = True
            product = self._multiplied(e, x)
            self._take(e, product, e.blank if plain else e.gains, policy, not started, out)
            started = True
        if not started:
            out.fill(self.worst)

    def _multiplied(self, e: _Layer, x: Array) -> Array | None:
        """Return the product with a layer's matrix, in the shared vector."""
        if e.space is None:
            return None
        product = self._product[: e.rows]
        e.space.multiply(x, product)
        return product

    def _take(
        self, e: _Layer, product: Array | None, gains: Array, policy: Array | None, first: bool, out: Array
    ) -> None:
        """Take one layer's choices into account."""
        if not self._compiled:
            self._take_by_arrays(e, product, gains, policy, first, out)
            return
        from hybrid.cpu import choice_kernels as kernels

        codes = self._no_codes if e.codes is None else e.codes
        operands = (codes, e.codes is not None, gains, e.factors, len(e.factors) > 0)
        chosen = (self._no_policy if policy is None else policy, policy is not None, e.layer)
        source = self._product if product is None else product
        kernel: Any = kernels.take_better if e.place is None else kernels.take_better_at

        def run(begin: int, end: int, number: int) -> None:
            if e.place is None:
                kernel(begin, end, source, product is not None, *operands, first, self.maximise, *chosen, out)
            else:
                kernel(
                    begin, end, e.place, source, product is not None, *operands, self.maximise, *chosen, out
                )

        run_in_parts(e.rows, run)

    def _take_by_arrays(
        self, e: _Layer, product: Array | None, gains: Array, policy: Array | None, first: bool, out: Array
    ) -> None:
        xp = self.space.xp
        value = self._values(e, product, gains)
        if policy is not None:
            chosen = policy if e.place is None else policy[e.place]
            value = xp.where(chosen == e.layer, value, self.worst)
        reduce = xp.maximum if self.maximise else xp.minimum
        if e.place is not None:
            out[e.place] = reduce(out[e.place], value)
        elif first:
            out[...] = value
        else:
            reduce(out, value, out=out)

    def _values(self, e: _Layer, product: Array | None, gains: Array) -> Array:
        """Return what a layer's choices are worth, row by row."""
        own = e.operand(gains)
        if product is None:
            return own
        with np.errstate(over="ignore", invalid="ignore"):
            if len(e.factors):
                product *= e.operand(e.factors)
            return product + own

    def _choices(self, x: Array) -> tuple[Array, Array]:
        xp = self.space.xp
        best, policy = xp.full(self.size, self.worst), xp.full(self.size, NO_CHOICE, dtype=np.uint16)
        for e in self._layers:
            value = self._values(e, self._multiplied(e, x), e.gains)
            rows = slice(None) if e.place is None else e.place
            before = best[rows]
            better = value > before if self.maximise else value < before
            best[rows] = xp.where(better, value, before)
            policy[rows] = xp.where(better, np.uint16(e.layer), policy[rows])
        return best, policy

    def _finish(self, x: Array, out: Array, factor: float, shape: Array | None) -> None:
        if self._compiled:
            self.changes = finish_on_host(x, out, factor, shape)
            return
        xp = self.space.xp
        if factor != 1.0:
            out *= factor
        if shape is not None:
            out += shape
        self.changes = self.space.distance(out, x) if xp is not np or self.size else np.zeros(2)


def _entries(offer: Offer) -> float:
    """Return a measure of a matrix's size: its rows and diagram nodes."""
    assert offer.matrix is not None
    return float(offer.matrix.shape[0]) * 1e3 + sum(offer.matrix.nodes)


def _narrow(place: NDArray[np.int64]) -> NDArray[Any]:
    """Return places with as few bytes as they need."""
    return place.astype(np.uint32) if int(place.max(initial=0)) < 2**32 else place


def _encoded(offer: Offer) -> tuple[NDArray[Any] | None, Vector, Vector]:
    """Return codes, distinct gains and distinct factors, or None and the vectors themselves."""
    rows = len(offer.gain)
    pairs = np.empty(rows, np.complex128)
    pairs.real, pairs.imag = offer.gain, 0.0 if offer.factor is None else offer.factor
    none = np.zeros(0)
    limit = min(_CODES, max(16, rows // 8))
    few = len(np.unique(pairs[:_SAMPLE])) <= limit
    if few:
        distinct, codes = np.unique(pairs, return_inverse=True)
        if len(distinct) <= limit:
            narrow = np.uint8 if len(distinct) <= 256 else np.uint16
            gains = np.ascontiguousarray(distinct.real)
            factors = none if offer.factor is None else np.ascontiguousarray(distinct.imag)
            return codes.reshape(-1).astype(narrow), gains, factors
    return None, np.ascontiguousarray(offer.gain), none if offer.factor is None else offer.factor
