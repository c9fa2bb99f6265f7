"""Configuration of the documentation."""

import warnings

from sklearn_latent import __version__

project = "sklearn_latent"
copyright = "The sklearn_latent developers"
author = "The sklearn_latent developers"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build"]
default_role = "literal"

html_theme = "pydata_sphinx_theme"
html_title = "sklearn_latent"
html_show_sourcelink = False
html_theme_options = {"show_prev_next": False, "secondary_sidebar_items": ["page-toc"]}

autosummary_generate = True
autodoc_default_options = {"member-order": "groupwise"}
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"demo\.py",
    "abort_on_example_error": True,
    "show_memory": False,
    "plot_gallery": "True",
}

# An example that warns is an example to repair; only what it cannot help is let by.
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
