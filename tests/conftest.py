"""Settings for all tests."""

import os

# scikit-learn skips its array API check unless SciPy was imported with this.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

from hypothesis import settings

# A change is judged by the same examples every time; on the desk, new ones are tried.
settings.register_profile("ci", derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# Not a module with tests: it is run, and checked by mypy.
collect_ignore = ["typed_user_script.py"]
