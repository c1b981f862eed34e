PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CODE := src tests benchmarks scripts examples
BROWSERS := chromium chromium-browser google-chrome

ALONE := tests/review/test_load.py
LOWEST := excel,lightning,onnx,photos,review,tensorboard,transformers

.PHONY: help demo test test-lowest check browser axe docs proofs bench release clean

help:  ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -c constraints.txt -e ".[test]"
	@touch $@

demo: $(STAMP)  ## set up, then the whole story on real photographs in about a minute
	$(BIN)/labelmend demo

test: $(STAMP) browser  ## set up, then formatting, lint, strict types and the tests, in two processes
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy
	$(BIN)/pytest -n 2 --dist loadgroup

test-lowest: $(STAMP)  ## the tests with every direct dependency at its lowest version, in an environment of their own
	$(BIN)/python scripts/lowest.py > $(VENV)/lowest.txt
	$(PYTHON) -m venv $(VENV)/lowest
	$(VENV)/lowest/bin/pip install --quiet -c $(VENV)/lowest.txt -e ".[$(LOWEST)]" hypothesis pandas playwright pytest pytest-xdist
	$(VENV)/lowest/bin/pytest -n 2 --dist loadgroup -W ignore::DeprecationWarning -W ignore::FutureWarning

check: test  ## the same as test

browser:  ## install Debian's chromium for the browser tests, where there is none and this machine allows it
	@if [ -n "$$LABELMEND_CHROMIUM" ] || which $(BROWSERS) 2>/dev/null | grep -q .; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && which apt-get >/dev/null 2>&1; then \
		echo "installing chromium for the browser tests (apt-get)"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
			apt-get install -y -qq --no-install-recommends chromium >/dev/null && exit 0; \
		echo "chromium could not be installed: the browser tests will be skipped"; \
	else \
		echo "no Chromium here: the browser tests will be skipped; install one of $(BROWSERS), or set LABELMEND_CHROMIUM"; \
	fi

axe: $(STAMP)  ## fetch axe-core for the tests of accessibility, where there is npm; they are skipped without it
	@if [ -f $(VENV)/axe.min.js ]; then exit 0; fi; \
	if ! which npm >/dev/null 2>&1; then echo "no npm here: the tests of accessibility will be skipped"; exit 0; fi; \
	cd $(VENV) && npm pack --silent axe-core@4 >/dev/null && tar xzf axe-core-*.tgz package/axe.min.js && \
		mv package/axe.min.js . && rm -rf package axe-core-*.tgz

docs: $(STAMP)  ## build the documentation into site/, and fail on a dead link or a warning
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --clean

proofs: $(STAMP) browser axe  ## the slow proofs of quality and reliability; those of speed alone, the others in two processes
	$(BIN)/pip install --quiet -c constraints.txt -e ".[release]"
	$(BIN)/pytest -m slow --junitxml=$(VENV)/proofs-alone.xml $(ALONE)
	$(BIN)/pytest -m slow -n 2 --dist loadgroup --junitxml=$(VENV)/proofs.xml $(ALONE:%=--ignore %)

bench: $(STAMP)  ## how fast it is, as ratios; half an hour on a quiet machine
	$(BIN)/python benchmarks/speed.py --out benchmarks/results/speed.json
	$(BIN)/python benchmarks/draw_speed.py benchmarks/results/speed.json --out docs/images

release: $(STAMP)  ## wheel, sdist, bill of materials and licences in dist/, built twice and compared
	$(BIN)/pip install --quiet -c constraints.txt -e ".[release]"
	$(BIN)/python scripts/release.py

clean:  ## remove the environment and caches
	rm -rf $(VENV) site dist .mypy_cache .ruff_cache .pytest_cache .hypothesis build src/*.egg-info
