"""Sphinx configuration: `make docs`, with the `docs` extra installed. Nothing here needs a network."""

import re
from importlib.metadata import version as distribution_version

from sphinx.application import Sphinx

from hybrid.highlighting import PrismLexer

project = "hybrid"
author = "The hybrid developers"
copyright = "2026, The hybrid developers"
release = distribution_version("hybrid-model-checker")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
]
exclude_patterns = ["_templates"]
templates_path = ["_templates"]

# ------------------------------------------------------------------ pages

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
# Notebooks are shown with the outputs that they hold; tests/test_notebooks.py runs them and compares.
nb_execution_mode = "off"
highlight_language = "text"

# ------------------------------------------------------------------ reference

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
# The docstrings say types with their shapes and dtypes, which annotations cannot.
autodoc_typehints = "none"
autodoc_preserve_defaults = True
numpydoc_show_class_members = False
# What stands in single backticks in a docstring is code, and a link where it is a name.
default_role = "py:obj"
toc_object_entries_show_parents = "hide"

# ------------------------------------------------------------------ looks

html_theme = "furo"
html_title = "hybrid"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5fa8", "color-brand-content": "#1f5fa8"},
    "dark_css_variables": {"color-brand-primary": "#7db7ff", "color-brand-content": "#7db7ff"},
}
html_show_sourcelink = False


# Pages link to texts of the repository that are no pages; on the site these can be downloaded.
OUTSIDE = re.compile(r"\[([^\[\]]+)\]\((\.\./(?:benchmarks|examples)/[\w./-]+\.(?:md|ipynb))\)")


def offer_outside_texts(app: Sphinx, page: str, source: list[str]) -> None:
    """Turn links to texts outside of this folder into downloads."""
    source[0] = OUTSIDE.sub(r"{download}`\1 <\2>`", source[0])


def setup(app: Sphinx) -> None:
    """Add what pages need beside the extensions."""
    app.connect("source-read", offer_outside_texts)
    # By name, also where the distribution was installed before it had this entry point.
    app.add_lexer("prism", PrismLexer)
