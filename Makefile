# `make` lists what there is. Nothing here needs root or a compiler.

VENV := .venv
PYTHON ?= python3
RANKS ?= 2
OUTPUT ?= output/compare

# Ranks already share the cores; threads inside each would only compete for them.
export OMP_NUM_THREADS ?= 1

BIN := $(VENV)/bin
# Only wheels: an installation that would have to compile stops instead.
PIP := $(BIN)/python -m pip install --quiet --only-binary=:all:

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install fem run test lint doctor benchmark clean

help:
	@echo 'make run        install, then compare particles with a density on 2 ranks (RANKS=2)'
	@echo 'make fem        build the finite-element environment (Debian, Ubuntu; root or sudo)'
	@echo 'make test       install, then run the whole test suite, finite elements included'
	@echo 'make lint       install, then check style with ruff'
	@echo 'make benchmark  install, then measure the field against the dense sum'
	@echo 'make install    install only'
	@echo 'make doctor     say what is installed and whether it fits together'
	@echo 'make clean      remove the environment and caches; what runs wrote in output/ stays'

install: $(VENV)/core.stamp

# Outside any clone, and shared by all of them.
fem:
	@install/finite_elements.sh

run: $(VENV)/core.stamp
	$(BIN)/mpirun -n $(RANKS) $(BIN)/python drivers/compare.py --output $(OUTPUT) --overwrite

# The core in its own environment, then what needs a mesh in the other.
test: $(VENV)/test.stamp fem
	$(BIN)/python -m pytest
	PYTHONPATH=. "$$(install/finite_elements.sh --where)"/bin/python -m pytest tests/finite_element

doctor: $(VENV)/core.stamp
	@$(BIN)/python -m meanfield doctor

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .

benchmark: $(VENV)/core.stamp
	$(BIN)/python benchmarks/run.py

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .hypothesis .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps say what has been installed; they age when setup.cfg changes.
$(VENV)/core.stamp: $(VENV)/venv.stamp setup.cfg
	@echo 'Installing meanfield and what it needs into $(VENV) (about a minute, once) ...'
	@$(PIP) --editable '.[mpi]' --no-build-isolation
	@touch $@

$(VENV)/test.stamp: $(VENV)/core.stamp
	@echo 'Installing what tests and style checks need ...'
	@$(PIP) --editable '.[mpi,test]' --no-build-isolation
	@touch $@

$(VENV)/venv.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo 'meanfield needs Python 3.11 or newer, and $(PYTHON) is not that;' \
	         'name one that is: make PYTHON=python3.12 ...' >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	    echo '$(PYTHON) cannot make virtual environments;' \
	         'on Debian and Ubuntu install python3-venv (apt-get install python3-venv)' >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) 'setuptools>=77'
	@touch $@
