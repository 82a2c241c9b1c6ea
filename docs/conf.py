"""Sphinx configuration: `make docs`, with the `docs` extra installed. Nothing here needs a network."""

import re
import shutil
import subprocess
import sys
from importlib.metadata import version as distribution_version
from pathlib import Path

from sphinx.application import Sphinx

from hybrid.app.highlighting import PrismLexer

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
# Two dashes begin an option; quotes belong to code.
smartquotes = False

# ------------------------------------------------------------------ reference

# Pages of names that are gone would stay, outside of every table of contents.
shutil.rmtree(Path(__file__).parent / "api/generated", ignore_errors=True)
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
if tags.has("versions"):  # noqa: F821 (Sphinx has it here); `make site`: pages of several versions
    _parts = ("brand", "search", "scroll-start", "navigation", "scroll-end")
    html_sidebars = {"**": [*(f"sidebar/{part}.html" for part in _parts), "versions.html"]}


# Pages link to texts of the repository that are no pages; on the site these can be downloaded.
OUTSIDE = re.compile(
    r"\[([^\[\]]+)\]\((\.\./(?:benchmarks|docs/notebooks|examples)/[\w./-]+\.(?:md|ipynb))\)"
)

# The level explorer's page itself stands on the site; where pages are read as text there is nothing.
PLACE = "<!-- On the site: the explorer's page itself. -->"
EXPLORER = "explorer-kanban.html"
LINK = f"""```{{raw}} html
<p><a class="page-itself" href="{EXPLORER}">Open the page of kanban, t = 1 to 4</a></p>
```"""


def complete_page(app: Sphinx, page: str, source: list[str]) -> None:
    """Turn links to texts outside of this folder into downloads; link the explorer's page."""
    if app.builder.format == "html":
        source[0] = source[0].replace(PLACE, LINK)
    source[0] = OUTSIDE.sub(r"{download}`\1 <\2>`", source[0])


def write_explorer(app: Sphinx, error: Exception | None) -> None:
    """Write the explorer's page, the blocks of four models, beside the others."""
    if error is None and app.builder.format == "html":
        root, page = Path(__file__).parent.parent, Path(app.outdir) / EXPLORER
        options = ["--const", "t=1:4", "--to", str(page), "--quiet"]
        command = [sys.executable, "-m", "hybrid", "explore", "examples/kanban.prism", *options]
        subprocess.run(command, cwd=root, check=True, stdout=subprocess.DEVNULL)


def setup(app: Sphinx) -> None:
    """Add what pages need beside the extensions."""
    app.connect("source-read", complete_page)
    app.connect("build-finished", write_explorer)
    # By name, also where the distribution was installed before it had this entry point.
    app.add_lexer("prism", PrismLexer)
