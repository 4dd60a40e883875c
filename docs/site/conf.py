"""Sphinx's settings of the site. `cargo xtask site` runs it, over the pages that build.py writes."""

import os

project = "somafeed"
author = "the somafeed authors"
version = release = os.environ.get("SOMAFEED_VERSION", "")
extensions = ["myst_parser", "sphinx_copybutton"]
root_doc = "index"
language = "en"

myst_enable_extensions = ["colon_fence", "fieldlist"]
myst_heading_anchors = 6

html_theme = "furo"
html_title = f"somafeed {version}"
html_static_path = [os.path.join(os.path.dirname(__file__), "static")]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
if repository := os.environ.get("SOMAFEED_REPOSITORY"):
    html_theme_options["footer_icons"] = [
        {"name": "Repository", "url": repository, "html": "repository", "class": ""}
    ]

pygments_style = "friendly"
pygments_dark_style = "monokai"
# A parameter on each line where the signature is long.
maximum_signature_line_length = 72
toc_object_entries_show_parents = "hide"
# Prompts are not copied.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
