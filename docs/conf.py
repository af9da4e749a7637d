"""How these pages are built: ``make docs``, offline, with every warning an error.

The pages are Markdown (MyST), the API pages come from the docstrings (numpydoc), and the tutorials are run
and drawn by sphinx-gallery. The extensions of this project are in `_extensions`.
"""

import os
import sys
from pathlib import Path

import manifold_dl

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "manifold_dl"
author = "the manifold_dl developers"
copyright = f"2026, {author}"
version = release = manifold_dl.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
    "mathml",  # formulas, without a script from the network
    "crossreferences",  # names in code marks become links
    "sourcecode",  # links to lines of the source lead to pages of it
    "gallery",  # the notebooks to download, in clean Markdown
]
exclude_patterns = ["_build", "**/README.md"]
templates_path = ["_templates"]
default_role = "code"  # docstrings put names in single marks; `crossreferences` makes them links
highlight_language = "none"  # a block without a language is output or a drawing
nitpicky = True

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 4
myst_url_schemes = {"http": None, "https": None, "mailto": None, "source": "{{path}}#{{fragment}}"}

# A name is documented where users find it: manifold_dl.SimCO, not manifold_dl.updates.simco.SimCO.
autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"  # the docstrings say more than the types
autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../tutorials",
    "gallery_dirs": "tutorials",
    "filename_pattern": r"[/\\]\d\d_\w+\.py$",
    "within_subsection_order": "FileNameSortKey",
    "doc_module": ("manifold_dl",),
    "backreferences_dir": "tutorials/backreferences",
    "reference_url": {"manifold_dl": None},
    "inspect_global_variables": True,
    "capture_repr": (),
    "thumbnail_size": (480, 240),  # most figures are wide
    "download_all_examples": False,
    "write_computation_times": False,
    "show_signature": False,
    "remove_config_comments": True,
    "log_level": {"backreference_missing": "info"},
    "reset_modules": ("matplotlib", "gallery.prepare"),
    "first_notebook_cell": "%matplotlib inline",
    "parallel": min(2, os.cpu_count() or 1),
}

html_theme = "pydata_sphinx_theme"
html_title = "manifold_dl"
html_static_path = ["_static"]
html_css_files = ["manifold_dl.css"]
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": [], "reproduction": [], "changelog": []}  # there is nothing beside these pages
html_theme_options = {
    "logo": {"text": "manifold_dl", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "secondary_sidebar_items": ["page-toc", "sg_download_links"],
}


def _skip_member(app, what, name, obj, skip, options):
    """Leave out what scikit-learn adds for metadata routing: those texts refer to its own pages."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def setup(app):
    app.connect("autodoc-skip-member", _skip_member)
