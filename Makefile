# `make demo` and `make test` do their whole set-up: a virtual environment in .venv, built once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint types bench clean

demo: $(READY)
	$(BIN)/discreet demo

test: $(READY) lint types
	find src -name '*.nb[ic]' -delete  # numba does not see changes in the files a cached kernel calls into
	$(BIN)/python -m pytest -n auto

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m benchmarks

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[cli]" --group dev
	touch $@

clean:
	rm -rf $(VENV) out .hypothesis .mypy_cache .pytest_cache .ruff_cache
