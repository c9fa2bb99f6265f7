"""Settings for all tests."""

import os

# scikit-learn skips its array API check unless SciPy was imported with this.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
