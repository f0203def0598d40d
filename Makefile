# Every target sets up what it needs: on a fresh machine `make test` is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXTRAS ?= dev
ARGS ?=
STAMP := $(VENV)/.installed$(if $(LOCK),.locked)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# A .venv that cannot import this checkout (moved, broken, other Python) is stale.
CHECK := import horizon_rl, sys; sys.exit(not horizon_rl.__file__.startswith("$(CURDIR)/"))
$(shell $(BIN)/python -c '$(CHECK)' 2>/dev/null || rm -f $(STAMP))

.PHONY: help install train test test-slow lint format docs bench clean

help: ## List the targets.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(STAMP) ## Make .venv with pinned dependencies; LOCK=locks/cpu.txt checks their hashes.

$(STAMP): pyproject.toml constraints.txt Makefile $(LOCK)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; name one: make PYTHON=python3.12"; exit 2; }
	@$(BIN)/python -c 'import pip' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
ifdef LOCK
	@# Of what is installed already no hash would be checked.
	$(PYTHON) -m venv --clear $(VENV)
	$(PIP) --require-hashes -r $(LOCK)
	$(PIP) --no-deps --no-build-isolation -e .
else
	$(PIP) -c constraints.txt -e '.[$(EXTRAS)]'
endif
	@touch $@

train: install ## Train with HORIZON; flags in ARGS: make train ARGS="--resume last".
	$(BIN)/python -m horizon_rl train $(ARGS)

test: install ## Run the tests that take no longer than a few seconds.
	$(BIN)/python -m pytest

test-slow: install ## Run those that take longer: trainings, kills, browsers, the wheel.
	@# By file: what the tests of one share is made only once.
	$(BIN)/python -m pytest -m slow --dist loadfile

lint: install ## Check format, lint and types.
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m ruff check .
	$(BIN)/python -m basedpyright

format: install ## Format the code.
	$(BIN)/python -m ruff format .
	$(BIN)/python -m ruff check --fix .

docs: install ## Build the documentation's pages into site/.
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

bench: install ## Measure what the parts cost on this machine.
	$(BIN)/python -m horizon_rl bench curriculum
	$(BIN)/python -m horizon_rl bench physics
	$(BIN)/python -m horizon_rl bench env
	$(BIN)/python -m horizon_rl bench train

clean: ## Remove the virtual environment and all caches.
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis build dist site
