"""Settings for all tests."""

import os

# scikit-learn skips its array API check unless SciPy was imported with this.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

from hypothesis import settings

# A change is judged by the same examples everywhere and every time; `make explore`
# tries new ones. What takes long on a busy machine is not wrong.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile("same")

# Not a module with tests: it is run, and checked by mypy.
collect_ignore = ["typed_user_script.py"]
