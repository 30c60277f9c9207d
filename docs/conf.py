"""How the documentation is built: `make docs`, warnings are errors."""

project = "Steelyard"
author = "The Steelyard maintainers"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {"description": "A robot arm that weighs itself", "page_width": "72em", "sidebar_width": "16em"}
html_title = "Steelyard"
myst_heading_anchors = 3
# Links to files of the repository beside docs/ are for those who read it on disk or on a forge.
suppress_warnings = ["myst.xref_missing"]
