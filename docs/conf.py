"""Settings of the site; `scripts/docs` builds it."""

import os
import re
from importlib.metadata import version as installed
from pathlib import Path

from sphinx_gallery.sorting import FileNameSortKey

import visionshare

DOCS = Path(__file__).parent
# What the gallery and the API pages run must not depend on the machine's screen or threads.
os.environ.setdefault("MPLBACKEND", "agg")

project = "visionshare"
author = "The visionshare developers"
copyright = author
release = version = visionshare.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
needs_extensions = {"myst_parser": "2.0"}
exclude_patterns = ["_build", "gallery/README.rst"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
default_role = "literal"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
DESCRIPTION = (
    "Small, fast image classifiers from folders of pictures: from 2.5 KB of flash, without a GPU."
)
myst_html_meta = {
    "description lang=en": DESCRIPTION,
    "property=og:title": "visionshare",
    "property=og:description": DESCRIPTION,
}
if SITE := os.environ.get("VISIONSHARE_SITE_URL"):
    myst_html_meta["property=og:image"] = f"{SITE.rstrip('/')}/_static/preview.png"

autosummary_generate = True
# The names of a package are in its `__all__`, also those that another module defines.
autosummary_imported_members = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"plot_\d\d_.*\.py$",
    "within_subsection_order": FileNameSortKey,
    "abort_on_example_error": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 5,
    "write_computation_times": False,
    "plot_gallery": os.environ.get("VISIONSHARE_DOCS_RUN", "1") == "1",
}
# Warnings are errors; a gallery that is not run warns of nothing else.
suppress_warnings = ["config.cache"]

html_theme = "pydata_sphinx_theme"
html_title = f"visionshare {release}"
html_static_path = ["_static"]
html_favicon = "_static/logo.svg"
# Where the site will be; links to it and its preview image are absolute.
html_baseurl = SITE or ""
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
        "text": html_title,
    },
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
}
# These have no pages below them, which a sidebar would list.
html_sidebars = {name: [] for name in ("quickstart", "own-pictures", "concepts")}
html_context = {"default_mode": "auto"}
copybutton_prompt_text = r"^\$ |^>>> |^\.\.\. "
copybutton_prompt_is_regexp = True

# Pages that a folder's own page lists, so that a new one is found without a line here.
LISTED = {"decisions/README": "decisions", "families/index": "families", "results/index": "results"}


# Pages of docs/ that stand elsewhere; all others are how-to pages.
PLACED = {
    "index", "quickstart", "own-pictures", "concepts",
    "reference", "commands", "formats", "glossary", "systems",
}  # fmt: skip


def list_pages(app, docname, source):
    """Append the pages of a folder to the navigation of the folder's page."""
    if docname == "howto/index":
        stems = sorted({page.stem for page in DOCS.glob("*.md")} - PLACED)
        names = [f"../{stem}" for stem in stems if f"\n../{stem}\n" not in source[0]]
        if names:
            source[0] += "\n\n```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```\n"
        return
    folder = LISTED.get(docname)
    if folder is None:
        return
    own = docname.split("/")[1]
    stems = sorted(page.stem for page in (DOCS / folder).glob("*.md") if page.stem != own)
    names = [name for name in stems if f"\n{name}\n" not in source[0]]
    if names:
        source[0] += "\n\n```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```\n"


# Literal text stays as it is; elsewhere these characters are those of a formula, not of markup.
LITERAL = re.compile(r"(``.*?``|:[\w:]+:`[^`]+`)")
MARKUP = re.compile(r"\||\*(?=[\w.])|(?<=\w)_(?!\w)")


def take_text_literally(app, what, name, thing, options, lines):
    """Escape what reStructuredText would read as markup: docstrings are written for terminals."""
    inside = False
    for number, line in enumerate(lines):
        text = line.strip()
        # A doctest ends at an empty line.
        inside = text.startswith(">>>") or (inside and text != "")
        if inside or text.startswith(".. "):
            continue
        parts = LITERAL.split(line)
        parts[::2] = [MARKUP.sub(r"\\\g<0>", part) for part in parts[::2]]
        lines[number] = "".join(parts)


def skip_inherited(app, what, name, thing, skip, options):
    """Leave out what scikit-learn adds to every estimator of its own accord."""
    return True if name.endswith(("_request", "_metadata_routing")) else None


def setup(app):
    """Connect what Sphinx calls."""
    app.connect("source-read", list_pages)
    app.connect("autodoc-skip-member", skip_inherited)
    # Before numpydoc.
    app.connect("autodoc-process-docstring", take_text_literally, priority=100)
    return {"parallel_read_safe": True, "version": installed("visionshare")}
