"""The explorer's page: one file of HTML with its style, its programs and its data, that asks for no other.

The parts are files of this folder, put together as they are. Data go in as JSON in which no character can end
the element that holds it, and the programs write all of it as text, never as HTML: labels and names of files
are whatever their authors liked. The page's own policy lets nothing run but these programs, by their digests,
and lets nothing be fetched.
"""

from hybrid.app.explorer.page.write import page_text, write_page

__all__ = ["page_text", "write_page"]
