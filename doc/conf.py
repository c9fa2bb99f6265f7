"""Configuration of the documentation."""

import sys
import warnings
from pathlib import Path

from sphinx_gallery.sorting import ExplicitOrder

from sklearn_latent import __version__
from sklearn_latent.exceptions import LatentWarning

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "sklearn_latent"
copyright = "The sklearn_latent developers"
author = "The sklearn_latent developers"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "matplotlib.sphinxext.plot_directive",
    "drawn_math",
]
html_math_renderer = "drawn"
templates_path = ["_templates"]
exclude_patterns = ["_build", "snippets"]
default_role = "literal"

html_theme = "pydata_sphinx_theme"
html_title = "sklearn_latent"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/yes_no.svg"
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "sklearn_latent"},
    "header_links_before_dropdown": 6,
    "show_prev_next": False,
    # Scripts of the gallery need the width of the page.
    "secondary_sidebar_items": {"*": ["page-toc"], "api/generated/*": ["page-toc"]},
    "navbar_align": "left",
}
html_sidebars = {"index": [], "getting_started": [], "alternatives": []}

autosummary_generate = True
autodoc_default_options = {"member-order": "groupwise"}
numpydoc_show_class_members = False
toc_object_entries_show_parents = "hide"

# Pictures of pages are drawn by the build.
plot_formats = [("png", 120)]
plot_include_source = False
plot_html_show_formats = False
plot_html_show_source_link = False

# From simple to advanced.
GALLERY_ORDER = [
    "plot_hidden_images.py",
    "plot_noisy_or_parameters.py",
    "plot_diagnosis.py",
    "plot_expression.py",
    "plot_linear_or_sigmoid.py",
    "plot_margins.py",
    "plot_patient_panel.py",
    "plot_real_findings.py",
    "plot_real_abilities.py",
    "plot_real_personality.py",
    "plot_real_liver.py",
    "plot_thresholds.py",
    "plot_compare.py",
    "plot_pipeline.py",
    "plot_uncertainty.py",
    "plot_streaming.py",
    "plot_notebook.py",
    "plot_paper_noisy_or.py",
    "plot_paper_quartets.py",
    "plot_paper_ideal_parent.py",
    "plot_paper_local_to_global.py",
]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"demo\.py",
    "within_subsection_order": ExplicitOrder([*GALLERY_ORDER, "*"]),
    "abort_on_example_error": True,
    "show_memory": False,
    "write_computation_times": False,
    # Show estimators and tables, but no "<Legend object at ...>".
    "capture_repr": ("_repr_html_",),
    "plot_gallery": "True",
    "backreferences_dir": "api/generated/used",
    "doc_module": ("sklearn_latent",),
    "inspect_global_variables": True,
}

# Examples must not warn.
warnings.filterwarnings("error", category=LatentWarning)
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
