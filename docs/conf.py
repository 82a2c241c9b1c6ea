"""Sphinx configuration: `sphinx-build -W docs build/docs`, with the `docs` extra installed."""

from importlib.metadata import version as distribution_version

project = "hybrid"
author = "The hybrid developers"
copyright = "2026, The hybrid developers"
release = distribution_version("hybrid-model-checker")
extensions = ["myst_parser"]
