"""Gauss-Seidel over choices: each state from the newest values of those before it, in the better order.

From below any order will do.  With ``x <= x*`` and f monotone every new value ``f(z)``, z between x and x*,
is a lower bound, and values only rise; what is newer is nearer.  How much is gained depends on the order:
where time passes, or a counter counts, one of the two directions through the states brings a value the whole
way in one step, the other one as far as any step does.  Which one it is is tried: some steps in one
direction, twice as many in the other, and some in the first again, so that both have their share of the early
steps, which gain most.  All of them count.
"""

from __future__ import annotations

from hybrid.matrix.space.choosing import Choosing
from hybrid.matrix.space.record import Numbers
from hybrid.matrix.space.workspace import Array, Pair

_TURNS = (4, 12, 16)  # steps of a trial after which the direction changes, twice, and after which it ends
_AGAIN = 8  # times the steps before the last trial, or of the first one, until the next one begins


class GaussSeidelSteps:
    """Steps of a choice operator that rise; see :class:`hybrid.matrix.space.workspace.Steps`.

    Parameters
    ----------
    operator : Choosing
        With Gauss-Seidel steps.
    factor : float
    shape, policy : array, optional
        As for `Choosing.improve`.
    descending : bool, optional
        The direction to begin with, where it is known; else it is tried at once.

    Attributes
    ----------
    descending : bool
        The direction of the next step.

    Notes
    -----
    `changes` are those of a whole step, and no bound on what a step of all states at once would change.
    """

    def __init__(
        self,
        operator: Choosing,
        factor: float,
        shape: Array | None = None,
        policy: Array | None = None,
        descending: bool | None = None,
    ) -> None:
        self._operator, self._factor = operator, factor
        self._shape, self._policy = shape, policy
        self.descending, self._is_known = descending is not False, descending is not None
        self._before = 0.0  # the sum of all values where the stretch of a trial began
        self._gains = 0.0  # of the first direction less those of the other one

    @property
    def changes(self) -> Array:
        """See `Steps.changes`."""
        return self._operator.changes

    @property
    def course(self) -> Array:
        """Not known: these steps do not end by themselves."""
        raise NotImplementedError

    def sweep(self, pair: Pair, done: int, count: int, total: Array | None = None) -> None:
        """See `Steps.sweep`; iterates are not added up."""
        assert total is None
        for k in range(done, done + count):
            x, out = pair[k % 2], pair[1 - k % 2]
            self._turn(k, x)
            self._operator.gauss_seidel(
                x, out, self.descending, self._factor, shape=self._shape, policy=self._policy
            )

    def _turn(self, made: int, x: Array) -> None:
        """Change the direction where a trial says so."""
        begin = last_trial(made)
        stretch = made - begin
        if stretch and stretch not in _TURNS or begin == 0 and self._is_known:
            return
        (total,) = self._operator.space.read(x.sum())
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

    # ------------------------------------------------------------------ for records

    def told(self) -> Numbers:
        """Return the numbers that runs to come need."""
        return {"descending": float(self.descending), "total": self._before, "gains": self._gains}

    def take(self, numbers: Numbers) -> None:
        """Go on where an earlier run was, if it tells where; else the direction is the first one."""
        self.descending = bool(numbers.get("descending", 1.0))
        self._before, self._gains = numbers.get("total", 0.0), numbers.get("gains", 0.0)


def last_trial(made: int) -> int:
    """Return the steps before the last trial that has begun after so many steps, or begins now."""
    begin, following = 0, _AGAIN * _TURNS[-1]
    while following <= made:
        begin, following = following, _AGAIN * following
    return begin
