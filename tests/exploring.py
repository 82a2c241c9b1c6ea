"""More examples of every random test than its own settings ask for; see `make nightly`."""

from __future__ import annotations

from typing import Any

import hypothesis

__all__ = ["multiply_examples"]


def multiply_examples(function: Any, times: int) -> None:
    """Let a test of Hypothesis draw so many times as many examples as its settings say, and keep failures.

    The profile's database comes back, which a seed has taken away.
    """
    own: hypothesis.settings = function._hypothesis_internal_use_settings
    function._hypothesis_internal_use_settings = hypothesis.settings(
        own, max_examples=times * own.max_examples, database=hypothesis.settings.default.database
    )
