"""Acceptance conditions of Emerson and Lei: boolean combinations of "mark i again and again"."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

_OPPOSITE = {"t": "f", "f": "t", "Inf": "Fin", "Fin": "Inf", "&": "|", "|": "&"}


@dataclass(frozen=True)
class Acceptance:
    """A condition on the marks that a run meets infinitely often.

    Attributes
    ----------
    kind : str
        "t", "f", "Inf", "Fin", "&" or "|", as the HOA format writes them.
    mark : int
        Of "Inf" and "Fin"; else -1.
    parts : tuple of Acceptance
        Of "&" and "|".
    """

    kind: str
    mark: int = -1
    parts: tuple[Acceptance, ...] = ()

    def holds(self, marks: int) -> bool:
        """Return whether a set of marks, bit i for mark i, is accepted as the one met infinitely often."""
        if self.kind in ("t", "f"):
            return self.kind == "t"
        if self.kind in ("Inf", "Fin"):
            return (marks >> self.mark & 1 == 1) == (self.kind == "Inf")
        return (all if self.kind == "&" else any)(part.holds(marks) for part in self.parts)

    @property
    def marks(self) -> int:
        """The marks that occur, as bits."""
        own = 1 << self.mark if self.mark >= 0 else 0
        for part in self.parts:
            own |= part.marks
        return own

    def negated(self) -> Acceptance:
        """Return the complement."""
        return Acceptance(_OPPOSITE[self.kind], self.mark, tuple(part.negated() for part in self.parts))

    def changed(self, atom: Callable[[Acceptance], Acceptance]) -> Acceptance:
        """Return the condition with `atom` applied to every Inf and Fin."""
        if self.kind in ("Inf", "Fin"):
            return atom(self)
        if self.kind in ("&", "|"):
            join = all_accepted if self.kind == "&" else any_accepted
            return join(part.changed(atom) for part in self.parts)
        return self

    def pairs(self) -> list[tuple[int, int]]:
        """Return the condition as generalised Rabin pairs.

        Returns
        -------
        list of (int, int)
            Marks to be met finitely often only, and marks to be met again and again each, as bits; one pair
            suffices.  Pairs that another one implies are left out.

        Notes
        -----
        Exponential in the size of the condition at worst: it is its disjunctive normal form.
        """
        return _least(self._all_pairs())

    def _all_pairs(self) -> set[tuple[int, int]]:
        if self.kind == "t":
            return {(0, 0)}
        if self.kind == "f":
            return set()
        if self.kind in ("Inf", "Fin"):
            bit = 1 << self.mark
            return {(0, bit)} if self.kind == "Inf" else {(bit, 0)}
        if self.kind == "|":
            return set().union(*(part._all_pairs() for part in self.parts))
        found = {(0, 0)}
        for part in self.parts:
            own = part._all_pairs()
            joined = {(a | c, b | d) for a, b in found for c, d in own}
            found = set(_least({(a, b) for a, b in joined if not a & b}))
        return found

    def __str__(self) -> str:
        if self.kind in ("t", "f"):
            return self.kind
        if self.kind in ("Inf", "Fin"):
            return f"{self.kind}({self.mark})"
        texts = [f"({p})" if p.kind == "|" and self.kind == "&" else str(p) for p in self.parts]
        return f" {self.kind} ".join(texts)


def _least(pairs: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the pairs that no weaker pair makes superfluous, in a fixed order."""
    kept: list[tuple[int, int]] = []
    for a, b in sorted(pairs, key=lambda p: (p[0].bit_count() + p[1].bit_count(), p)):
        if not any(c & a == c and d & b == d for c, d in kept):
            kept.append((a, b))
    return kept


ALL = Acceptance("t")
NONE = Acceptance("f")


def infinitely(mark: int) -> Acceptance:
    """Return "mark again and again"."""
    return Acceptance("Inf", mark)


def finitely(mark: int) -> Acceptance:
    """Return "mark finitely often only"."""
    return Acceptance("Fin", mark)


def all_accepted(parts: Iterable[Acceptance]) -> Acceptance:
    """Return the conjunction, simplified."""
    return _joined("&", parts, ALL, NONE)


def any_accepted(parts: Iterable[Acceptance]) -> Acceptance:
    """Return the disjunction, simplified."""
    return _joined("|", parts, NONE, ALL)


def _joined(kind: str, parts: Iterable[Acceptance], neutral: Acceptance, zero: Acceptance) -> Acceptance:
    flat: dict[Acceptance, None] = {}
    for part in parts:
        flat.update(dict.fromkeys(part.parts if part.kind == kind else (part,)))
    flat.pop(neutral, None)
    opposite = any(p.kind == "Inf" and Acceptance("Fin", p.mark) in flat for p in flat)
    if zero in flat or opposite:
        return zero
    absorbing = _OPPOSITE[kind]
    kept = tuple(p for p in flat if not (p.kind == absorbing and any(q in flat for q in p.parts)))
    if len(kept) <= 1:
        return kept[0] if kept else neutral
    return Acceptance(kind, -1, kept)
