PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo test check proofs bench clean

help:  ## what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -c constraints.txt -e ".[test]"
	@touch $@

demo: $(STAMP)  ## set up, then the whole story on real images in about a minute
	$(BIN)/labelmend demo

test: $(STAMP)  ## set up, then the default test suite, in two processes
	$(BIN)/pytest -n 2

check: $(STAMP)  ## formatting, lint, types and tests: green before each commit
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/pytest -n 2

proofs: $(STAMP)  ## the slow proofs of quality and reliability
	$(BIN)/pytest -m slow -s

bench: $(STAMP)  ## how fast it is, as ratios; half an hour on a quiet machine
	$(BIN)/python benchmarks/speed.py --out benchmarks/results/speed.json
	$(BIN)/python benchmarks/draw_speed.py benchmarks/results/speed.json --out docs/images

clean:  ## remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build src/*.egg-info
