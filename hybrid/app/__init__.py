"""The doors: questions and experiments from Python, the command line, the level explorer."""

from __future__ import annotations

from mtbdd.base.lazy_loading import lazy_names

# `typing.TYPE_CHECKING` without importing `typing`, which takes long.
TYPE_CHECKING = False

if not TYPE_CHECKING:  # parts are attributes without an import of their own
    __getattr__ = lazy_names(__name__, {}, ("explorer",))
