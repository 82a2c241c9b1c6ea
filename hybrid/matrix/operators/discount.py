"""What a step leaves of a reward's worth, and what it takes, with the errors of both."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from mtbdd.language.rounded import doubles_around, real_of


@dataclass(frozen=True)
class Discount:
    """A number d between 0 and 1.

    Attributes
    ----------
    factor : float
        d.
    rest : float
        1 - d, with its own digits: the difference of doubles would have few of them where d is near 1.
    units : float
        Bound on the relative error of either, in units of rounding.
    """

    factor: float
    rest: float
    units: float

    @staticmethod
    def of(value: float) -> Discount:
        """Return the discount that a number of a property means."""
        exact = real_of(value)
        low, high = doubles_around(value)
        least, most = (exact, exact) if isinstance(exact, Fraction) else (Fraction(low), Fraction(high))
        spread = float((most - least) / (1 - most)) * 2.0**53
        return Discount(float(value), float(1 - most), 1.0 + spread)

    def bound(self, greatest: float, units: float = 0.0) -> float:
        """Return a bound on all that can be earned, from the most that a step earns.

        Parameters
        ----------
        greatest : float
        units : float
            Its relative error in units of rounding.
        """
        return greatest / self.rest * (1.0 + (units + self.units + 8.0) * 2.0**-52)  # lemma: rounding
