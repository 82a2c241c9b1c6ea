"""Builds this version's pages into a folder of its name, and the front page that lists all versions.

`make site` calls it with the folder of the site; docs/release.md says when.
"""

from __future__ import annotations

import html
import re
import subprocess
import sys
import tomllib
from pathlib import Path

DOCS = Path(__file__).resolve().parent

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>hybrid: versions of the pages</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font: 1rem/1.6 sans-serif; margin: 3rem auto; max-width: 40rem; padding: 0 1rem }}
</style>
<h1>hybrid</h1>
<p>The pages of every version. The newest is <a href="{newest}/index.html">{newest}</a>.</p>
<ul>
{entries}
</ul>
</html>
"""


def version() -> str:
    """Return the version that pyproject.toml names."""
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def versions(site: Path) -> list[str]:
    """Return the versions whose pages are in a site, the newest first."""
    found = [folder.parent.name for folder in site.glob("[0-9]*/index.html")]
    return sorted(found, key=lambda name: [int(part) for part in re.findall(r"\d+", name)], reverse=True)


def write_list(site: Path) -> None:
    """Write the front page of a site, with a link to the pages of each version."""
    names = [html.escape(name) for name in versions(site)]
    entries = "\n".join(f'<li><a href="{name}/index.html">{name}</a></li>' for name in names)
    (site / "index.html").write_text(PAGE.format(newest=names[0], entries=entries), encoding="utf-8")


def main() -> int:
    """Build the pages into the site that the command line names; return the exit status."""
    site = Path(sys.argv[1])
    # With the tag, pages link to the list of versions (docs/_templates/versions.html).
    options = ["-q", "-W", "--keep-going", "-j", "auto", "-t", "versions"]
    done = subprocess.run([sys.executable, "-m", "sphinx", *options, str(DOCS), str(site / version())])
    if done.returncode == 0:
        write_list(site)
    return done.returncode


if __name__ == "__main__":
    raise SystemExit(main())
