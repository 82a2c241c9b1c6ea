"""The direction of Gauss-Seidel steps over choices: the better one of two, which trials find.

From below any order will do.  With ``x <= x*`` and f monotone every new value ``f(z)``, z between x and x*,
is a lower bound, and values only rise. What is newer is nearer.  How much is gained depends on the order.
Where time passes, or a counter counts, one of the two directions brings a value the whole way in one step.
The other one brings it as far as any step does.

Trials tell which is better: some steps in one direction, twice as many in the other, and some in the first
again. So both have their share of the early steps, which gain most, and all of them count.
"""

from __future__ import annotations

from hybrid.matrix.space.base import Numbers

_TURNS = (4, 12, 16)  # steps of a trial after which the direction changes, twice, and after which it ends
_AGAIN = 8  # times the steps before the last trial, or of the first one, until the next one begins


class SweepDirection:
    """The direction of a step, and what trials have shown.

    Parameters
    ----------
    descending : bool, optional
        The direction to begin with, where it is known; else it is tried at once.

    Attributes
    ----------
    descending : bool
        Whether the next step takes the last state first.
    """

    def __init__(self, descending: bool | None) -> None:
        self.descending, self._is_known = descending is not False, descending is not None
        self._before = 0.0  # the sum of all values where the stretch of a trial began
        self._gains = 0.0  # of the first direction less those of the other one

    @staticmethod
    def next_turn(made: int) -> int:
        """Return the steps after which the direction may change next."""
        begin = last_trial(made)
        later = (begin + stretch for stretch in _TURNS if begin + stretch > made)
        return next(later, max(_AGAIN * begin, _AGAIN * _TURNS[-1]))

    def may_turn(self, made: int) -> bool:
        """Whether `turn` is due after so many steps."""
        begin = last_trial(made)
        stretch = made - begin
        return not (stretch and stretch not in _TURNS or begin == 0 and self._is_known)

    def turn(self, made: int, total: float) -> None:
        """Change the direction where a trial says so, by the sum of all values after so many steps."""
        stretch = made - last_trial(made)
        gained, self._before = total - self._before, total
        if stretch == 0:
            self._gains = 0.0
        elif stretch == _TURNS[1]:
            self._gains -= gained
        else:
            self._gains += gained
        if stretch in _TURNS[:2]:
            self.descending = not self.descending
        elif stretch == _TURNS[2] and self._gains < 0.0:
            self.descending = not self.descending

    def told(self) -> Numbers:
        """Return the numbers that runs to come need."""
        return {"descending": float(self.descending), "total": self._before, "gains": self._gains}

    def take(self, numbers: Numbers) -> None:
        """Continue an earlier run from its numbers; by default in the first direction."""
        self.descending = bool(numbers.get("descending", 1.0))
        self._before, self._gains = numbers.get("total", 0.0), numbers.get("gains", 0.0)


def last_trial(made: int) -> int:
    """Return the steps before the last trial that has begun after so many steps, or begins now."""
    begin, following = 0, _AGAIN * _TURNS[-1]
    while following <= made:
        begin, following = following, _AGAIN * following
    return begin
