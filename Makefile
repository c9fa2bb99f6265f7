# Every target makes its own environment in .venv when it is missing. All it takes is
# Python 3.11 or newer and make.
PYTHON ?= python3
VENV ?= .venv
# Empty to run the tests without measuring coverage: make test COVERAGE=
COVERAGE ?= --cov
# A file of version pins to install by, for example .ci/oldest.txt.
CONSTRAINTS ?=

BIN := $(VENV)/bin
PIP_FLAGS := --quiet --disable-pip-version-check $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS))
PACKAGING := setup.cfg pyproject.toml $(CONSTRAINTS)
# Names with an underscore in front are what the scripts share.
BENCHMARKS := $(filter-out benchmarks/_%,$(wildcard benchmarks/*.py))

# The arrays of the tests are small: threads under each worker only get in the way.
export OMP_NUM_THREADS ?= 1

.PHONY: help demo test explore lint mutants docs bench dist clean
.DELETE_ON_ERROR:

help:
	@echo "make demo    learn four hidden networks and write a report"
	@echo "make test    run the tests and the examples in docstrings, with branch coverage"
	@echo "make explore run the tests for an hour on new random examples, list what fails"
	@echo "make lint    check style, format, types, spelling and imports"
	@echo "make mutants change single operators and list what no test notices"
	@echo "make docs    build the documentation into doc/_build/html"
	@echo "make bench   run the benchmarks"
	@echo "make dist    build the source archive and the wheel into dist"
	@echo "make clean   remove the environment and everything that was built"

demo: $(VENV)/.plot
	$(BIN)/python examples/demo.py

test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto $(COVERAGE) --doctest-modules sklearn_latent tests

# For example: make explore MINUTES=5 TESTS=tests/properties FUZZ_EXAMPLES=10
MINUTES ?= 60
TESTS ?= tests
explore: $(VENV)/.test
	$(BIN)/python tools/explore.py --minutes $(MINUTES) $(TESTS)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell
	$(BIN)/lint-imports

# For example: make mutants MUTANTS="--paths sklearn_latent/mixed --count 30"
MUTANTS ?= --fail-under 90
mutants: $(VENV)/.test
	$(BIN)/python tools/mutants.py $(MUTANTS)

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -b html doc doc/_build/html
	@echo "Open doc/_build/html/index.html"

bench: $(VENV)/.benchmark
	set -e; for script in $(BENCHMARKS); do $(BIN)/python "$$script"; done

dist: $(VENV)/.release
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*

clean:
	rm -rf $(VENV) build dist .coverage doc/_build doc/gallery doc/api/generated ./*.egg-info

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; try: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

# One stamp per extra, so that a change of the requirements installs anew.
$(VENV)/.%: $(PACKAGING) | $(BIN)/python
	$(BIN)/python -m pip install $(PIP_FLAGS) --editable ".[$*]"
	@touch $@
