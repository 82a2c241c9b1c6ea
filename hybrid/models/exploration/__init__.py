"""Building explicitly: the reachable states of a text, found one after another, and then compressed.

For models without structure, whose diagrams take longer to make than their states to list; and the choice
between the two.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from mtbdd.base.budget import BudgetError
from mtbdd.base.errors import HybridError, option
from mtbdd.base.lazy_loading import lazy_names
from mtbdd.build.build import build_model
from mtbdd.build.model import SymbolicModel
from mtbdd.build.order import EffortError, Order, watched
from mtbdd.language import LanguageError
from mtbdd.language.syntax import ResolvedModel

if TYPE_CHECKING:
    from hybrid.models.exploration.build import build_explicitly
    from hybrid.models.exploration.search import CompiledSearch

__all__ = ["build_automatically", "build_explicitly"]
_HOMES = {"build": ("build_explicitly",)}

if not TYPE_CHECKING:  # type checkers have the imports above
    # On first use: what lists states is loaded where states are listed.
    __getattr__ = lazy_names(__name__, _HOMES)

# Building by diagrams, unless listing the states is sure to cost less.
#
# Diagrams are begun first. Counts predict the cost of their translation (`mtbdd.build.order`). Whenever it
# has doubled, the states are explored for a share of it, each time from where the search was. A search that
# comes to its end decides: the model is small, and its commands are costly. Counts decide, no clock: every
# machine builds a text the same way.

_CHEAP = 1e6
"""Microseconds of translation, by counts, for which no state is explored."""

_SHARE = 0.2
"""Transitions explored a microsecond of translation; each takes a microsecond, too."""

_LAST = 1 << 22
"""Transitions explored where the commands are none for diagrams."""

_log = logging.getLogger(__name__)


class _SmallModelError(Exception):
    """All states are explored."""


class _Probe:
    """Explores states while diagrams are made.

    `search`: None if there is none yet, or the text is none for it.
    """

    def __init__(self, source: ResolvedModel, say: Callable[[str], None]) -> None:
        self._source, self._say = source, say
        self._work, self._next = 0.0, _CHEAP
        self._is_over = False
        self.search: CompiledSearch | None = None

    def spend(self, microseconds: float) -> None:
        """Take notice of work; explore once in a while.

        Raises _SmallModelError: all states are explored.
        """
        self._work += microseconds
        if self._work < self._next:
            return
        self._next = 2.0 * self._work
        if self.explores(int(_SHARE * self._work)):
            raise _SmallModelError

    def explores(self, entries: int) -> bool:
        """Explore up to some transitions; return whether these are all."""
        if self._is_over:
            return False
        # They load Numba, which most texts do without.
        from hybrid.models.exploration.explore import UnsuitableError
        from hybrid.models.exploration.search import CompiledSearch

        try:
            if self.search is None:
                self.search = CompiledSearch(self._source)
            self._say("exploring states beside")
            return self.search.run(min(entries, _LAST))
        except BudgetError:
            raise
        except (HybridError, UnsuitableError, OverflowError, MemoryError) as error:
            # Diagrams find all faults of a text, not the first one alone.
            _log.debug("no states are explored: %s", error)
            self._is_over = True
            return False


def build_automatically(
    source: ResolvedModel,
    *,
    fix_deadlocks: bool = True,
    package: str = "auto",
    order: Order = "auto",
    progress: Callable[[str], None] | None = None,
) -> SymbolicModel:
    """Build a model by diagrams of its commands, or by listing its states where those cost far more.

    Parameters
    ----------
    source : ResolvedModel
    fix_deadlocks, package, order, progress
        As for `mtbdd.build.build.build_model`.

    Returns
    -------
    SymbolicModel
        Where states were listed, ``model.given.is_listed`` holds, and its warnings say so.

    Raises
    ------
    BuildError
        As `mtbdd.build.build.build_model` and `build_explicitly`.
    BudgetError, MemoryError

    Notes
    -----
    Time: at most a fifth more than diagrams take, where these are made, by the counts; a
    text of few and short commands is not probed at all.  Diagrams are begun again where the listed states
    make no model.
    """
    probe = _Probe(source, progress or (lambda text: None))

    def by_diagrams() -> SymbolicModel:
        return build_model(
            source, fix_deadlocks=fix_deadlocks, package=package, order=order, progress=progress
        )

    refused: EffortError | None = None
    try:
        with watched(probe.spend):
            return by_diagrams()
    except _SmallModelError:
        pass
    except EffortError as error:
        if not probe.explores(_LAST):
            raise
        refused = error
    from hybrid.models.exploration.build import build_explicitly

    # The diagrams are given up before others are made.
    try:
        found = build_explicitly(
            source,
            fix_deadlocks=fix_deadlocks,
            package=package,
            order=order,
            progress=progress,
            search=probe.search,
        )
    except LanguageError as error:
        if refused is not None:
            raise
        # Such as an unused reward: diagrams report it then, and all faults of a text at once.
        _log.debug("the states that are listed make no model: %s", error)
        return by_diagrams()
    found.warnings = (
        f"{source.file}: built by listing its {found.n_states:,} states, for its commands are costly as "
        f"diagrams; {option('build', 'symbolic')} makes these all the same",
        *found.warnings,
    )
    return found
