# `make demo` and `make test` do their whole set-up: a virtual environment in .venv, built once; the demo needs a part of it alone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(VENV)/.pip
COMMAND := $(VENV)/.command
SPARK := $(VENV)/.spark
READY := $(VENV)/.ready
COMPILED := $(VENV)/.compiled
READ := $(VENV)/.read
TOOLS := clients/js/node_modules/.ready
# Python compiles a module when it is first imported; pip would compile 16,000, of which most are never used.
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt

# Packages of Debian, or a line that says what is missing.
DEBIAN = { [ "$$(id -u)" = 0 ] && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(1) > /dev/null; } \
	|| echo "not installed: $(1)"

# Tests start some hundred processes, and each of them would compile our modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test suite quick slowest lint types bench soak fuzz client docs notebooks clean

demo: $(COMMAND)
	$(BIN)/discreet demo

# What does not need each other runs at the same time: tools beside Python's packages, kernels beside the larger packages, types beside tests.
test:
	$(MAKE) --no-print-directory --jobs 4 types suite

# Slow tests wait for services, browsers and disks: one worker more than there are cores.
WORKERS := $(shell $(PYTHON) -c "import os; print(1 + (os.cpu_count() or 1))")

# Every worker computes in one thread of its own: more would only wait for each other.
suite: export OMP_NUM_THREADS := 1
suite: export OPENBLAS_NUM_THREADS := 1

# What fails beside other tests runs once more, alone: a fault fails twice, a browser that had to wait too long does not. Both runs are printed.
suite: lint $(COMPILED) $(READ) $(TOOLS)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal || { [ $$? = 1 ] && echo "Once more, alone:" \
		&& $(BIN)/python -m pytest -v -rA --last-failed --last-failed-no-failures none; }

# For daily work: all but the slow tests, in two to three minutes on two cores.
quick: $(READY) $(COMPILED)
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow and not soak"

# Which tests take longest; the last run is in out/slowest.jsonl.
slowest: $(READY) $(COMPILED) $(TOOLS)
	$(BIN)/python tools/slowest.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

bench: $(READY) $(COMPILED)
	$(BIN)/python -m benchmarks

# All that is too long for every change; tools/soak.py has the steps, and out/soak.jsonl what became of them.
soak: $(READY) $(COMPILED) $(TOOLS)
	$(BIN)/python tools/soak.py

fuzz: $(READY) $(COMPILED)
	$(BIN)/python -m pip install --quiet atheris
	mkdir -p out/fuzz
	PYTHONPATH=. $(BIN)/python tools/fuzz/entry_points.py -max_total_time=600 -rss_limit_mb=4096 -artifact_prefix=$(CURDIR)/out/fuzz/

# The site, in out/site: the pages of docs/, the API from docstrings, the explorer. A broken link fails it.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

# The notebooks with their outputs, which are kept in the repository; tests run them and compare.
notebooks: $(READY) $(COMPILED)
	$(BIN)/python tools/update_notebooks.py

# The client for browsers as one file, which is kept in the repository.
client: $(TOOLS)
	npm run build --silent --prefix clients/js

# What it is built and tested with. Where we may, Node, a browser and PostgreSQL come from Debian; where not, tests that need them say so.
$(TOOLS): clients/js/package-lock.json
	command -v npm > /dev/null || $(call DEBIAN,nodejs npm)
	command -v chromium > /dev/null || $(call DEBIAN,chromium fonts-noto-core fonts-noto-cjk)
	command -v chromium-headless-shell > /dev/null || $(call DEBIAN,chromium-headless-shell)
	command -v openssl > /dev/null || $(call DEBIAN,openssl)
	test -d /usr/lib/postgresql || $(call DEBIAN,postgresql)
	-npm ci --silent --no-audit --no-fund --prefix clients/js && touch $@

$(PIP):
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	touch $@

# What the command needs: a minute where downloads allow.
$(COMMAND): pyproject.toml constraints.txt | $(PIP)
	$(INSTALL) --editable ".[cli,collect]"
	touch $@

# Spark comes as a source archive of 500 MB, most of it compressed already: the wheel that pip makes of it need not be compressed once more.
# It is made while the command's packages are installed.
$(SPARK): constraints.txt | $(PIP)
	$(BIN)/python -m pip wheel --quiet --no-deps --constraint constraints.txt --config-settings=--build-option=--compression=stored \
		--wheel-dir $(VENV)/wheels pyspark
	touch $@

# And what developing needs: torch, transformers, Spark, and the tools.
$(READY): $(COMMAND) $(SPARK)
	$(INSTALL) --find-links $(VENV)/wheels --editable ".[cli,collect,transformers]" --group dev
	rm -rf $(VENV)/wheels
	touch $@

# The kernels are compiled once, here, so that no test has to wait for them (or compile them twice at a time). The command's packages are
# enough; PYTHONPATH is for the moment in which pip replaces our own package among the others.
$(COMPILED): $(COMMAND) $(shell find src -name '*.py')
	PYTHONPATH=src $(BIN)/python -m discreet.tables.warm_up
	PYTHONPATH=src $(BIN)/python -m discreet.research.warm_up
	touch $@

# Python compiles the tests and all that they import when it first reads them: once, here, and not in every worker at the same time.
$(READ): $(READY)
	-$(BIN)/python -m pytest --collect-only -qq > /dev/null
	touch $@

clean:
	rm -rf $(VENV) clients/js/node_modules out src/discreet/__pycache__/kernels .hypothesis .mypy_cache .pytest_cache .ruff_cache
