# `make demo` and `make test` do their whole set-up: a virtual environment in .venv, built once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
COMPILED := $(VENV)/.compiled
KERNELS := src/discreet/projection/breakpoints.py src/discreet/projection/compiled.py $(wildcard src/discreet/release/*.py) \
  src/discreet/engines/tables.py src/discreet/mechanisms/boosted/compiled.py

.PHONY: demo test lint types bench soak fuzz clean

demo: $(READY) $(COMPILED)
	$(BIN)/discreet demo

test: $(READY) $(COMPILED) lint types
	$(BIN)/python -m pytest -n auto

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
	$(BIN)/python -m tests.estimation.coverage

fuzz: $(READY) $(COMPILED)
	$(BIN)/python -m pip install --quiet atheris
	mkdir -p out/fuzz
	PYTHONPATH=. $(BIN)/python tools/fuzz/entry_points.py -max_total_time=600 -rss_limit_mb=4096 -artifact_prefix=$(CURDIR)/out/fuzz/

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[cli,torch]" --group dev
	touch $@

# The kernels are compiled once, here, so that no release and no test has to wait for them (or compile them twice at a time).
$(COMPILED): $(KERNELS) | $(READY)
	@echo "compiling the kernels, once: half a minute or so"
	find src -name '*.nb[ic]' -delete  # numba does not see a change in a file that a cached kernel calls into
	$(BIN)/python -m discreet.mechanisms.warm_up
	$(BIN)/python -m discreet.engines.warm_up
	touch $@

clean:
	rm -rf $(VENV) out .hypothesis .mypy_cache .pytest_cache .ruff_cache
