"""How Sphinx makes the pages that tools/docs/build laid out into a book."""

from pathlib import Path

project = "iolab"
author = "the authors of iolab"
project_copyright = "the authors of iolab, Apache-2.0 or MIT"
extensions = ["myst_parser"]
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_block"]
# Transcripts of commands are not a language; TOML, C and the rest are told apart by their fences.
highlight_language = "text"
# The address of a section is what the pages' own links use.
nitpicky = False
html_theme = "furo"
html_title = "iolab"
# Nothing is loaded from elsewhere, and no page shows its source twice.
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
html_static_path = ["static"]
html_css_files = ["book.css"]
