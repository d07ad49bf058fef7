# Every target does its own set-up. Another interpreter: make test PYTHON=python3.12
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEV := $(VENV)/.installed-dev
BENCH := $(VENV)/.installed-bench
LOWEST := .venv-lowest

.DEFAULT_GOAL := help
.PHONY: help demo test lint types imports unit coverage lowest bench labels mutation clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(DEV) ## Label Iris with 15 % of its labels known; write demo/
	$(BIN)/python examples/demo.py

test: lint types imports coverage ## All checks: lint, types, imports, tests with coverage

lint: $(DEV) ## Ruff: rules and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(DEV) ## mypy, strict
	$(BIN)/mypy

imports: $(DEV) ## The one-way imports between packages
	$(BIN)/lint-imports

unit: $(DEV) ## The tests alone
	$(BIN)/pytest --numprocesses auto

coverage: $(DEV) ## The tests, with branch coverage of at least 95 %
	$(BIN)/pytest --numprocesses auto --cov

# Old packages warn of newer ones that they pull in, hence `-W default` in place of errors.
lowest: $(LOWEST)/.installed ## The tests with the oldest supported packages (Python 3.11 or 3.12)
	$(LOWEST)/bin/pytest --numprocesses auto -W default

bench: $(BENCH) ## Time and memory against peers; the rule for epsilon="auto"
	$(BIN)/python benchmarks/solver.py
	$(BIN)/python benchmarks/fit.py
	$(BIN)/python benchmarks/epsilon.py

labels: $(BENCH) ## How good the labels of the defaults are (hours; goes on where it ended)
	$(BIN)/python benchmarks/surprises.py
	$(BIN)/python benchmarks/parts.py
	$(BIN)/python benchmarks/suggestions.py
	$(BIN)/python benchmarks/few_labels.py

mutation: $(DEV) ## Break transport and propagation line by line; which tests notice? (half an hour)
	$(BIN)/python -m pip install --quiet --editable '.[mutation]'
	$(BIN)/mutmut run
	$(BIN)/mutmut results

clean: ## Remove the environments, caches and the demo's output
	rm -rf $(VENV) $(LOWEST) .coverage* .hypothesis .import_linter_cache .mypy_cache .pytest_cache \
		.ruff_cache build demo dist
	find examples scripts src tests benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# A virtual environment without pip is one whose creation failed half-way.
define make-venv
@$(PYTHON) -c 'import sys; sys.exit("otprop needs Python 3.11 or newer: name one with PYTHON=…" if sys.version_info < (3, 11) else 0)'
test -x $(1)/bin/pip || $(PYTHON) -m venv $(1)
endef

$(DEV): pyproject.toml
	$(call make-venv,$(VENV))
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

$(BENCH): pyproject.toml $(DEV)
	$(BIN)/python -m pip install --quiet --editable '.[timing]'
	touch $@

$(LOWEST)/.installed: pyproject.toml scripts/lowest.py
	$(call make-venv,$(LOWEST))
	$(LOWEST)/bin/python scripts/lowest.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip install --quiet --constraint $(LOWEST)/constraints.txt --editable '.[dev]'
	touch $@
