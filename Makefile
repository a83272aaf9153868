# `make demo` and `make test` do their whole set-up: a virtual environment in .venv, built once; the demo needs a part of it alone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
COMMAND := $(VENV)/.command
READY := $(VENV)/.ready
COMPILED := $(VENV)/.compiled
INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt

.PHONY: demo test quick lint types bench soak fuzz clean

demo: $(COMMAND)
	$(BIN)/discreet demo

test: $(READY) $(COMPILED) lint types
	$(BIN)/python -m pytest -n auto

# For daily work: all but the slow tests, in less than a minute on two cores.
quick: $(READY) $(COMPILED)
	$(BIN)/python -m pytest -n auto -m "not slow"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

bench: $(READY) $(COMPILED)
	$(BIN)/python -m benchmarks

soak: $(READY) $(COMPILED)
	$(BIN)/python -m tests.theorems.bands --bands 2000
	$(BIN)/python -m tests.ledger.kills --kills 1000
	$(BIN)/python -m tests.ledger.population_kills --kills 1000
	$(BIN)/python -m tests.fuzz.attacks --inputs 1000000
	$(BIN)/python -m tests.fuzz.mutants --inputs 100000
	$(BIN)/python -m tests.fuzz.signals --signals 1000
	$(BIN)/python -m tests.estimation.coverage

fuzz: $(READY) $(COMPILED)
	$(BIN)/python -m pip install --quiet atheris
	mkdir -p out/fuzz
	PYTHONPATH=. $(BIN)/python tools/fuzz/entry_points.py -max_total_time=600 -rss_limit_mb=4096 -artifact_prefix=$(CURDIR)/out/fuzz/

# What the command needs: a minute where downloads allow.
$(COMMAND): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(INSTALL) --editable ".[cli]"
	touch $@

# And what developing needs: torch, transformers, Spark, and the tools.
$(READY): $(COMMAND)
	$(INSTALL) --editable ".[cli,transformers]" --group dev
	touch $@

# The kernels are compiled once, here, so that no test has to wait for them (or compile them twice at a time).
$(COMPILED): $(READY) $(shell find src -name '*.py')
	$(BIN)/python -m discreet.engines.warm_up
	$(BIN)/python -m discreet.research.warm_up
	touch $@

clean:
	rm -rf $(VENV) out src/discreet/__pycache__/kernels .hypothesis .mypy_cache .pytest_cache .ruff_cache
