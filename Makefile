# make demo: set up, run the demo campaign, print the report's path.   make test: set up, test.
.PHONY: help setup dev demo torch check test gates size readme docs schemas lint format bench screenshots lock slurm-up slurm-down clean

VENV := .venv/bin
export PATH := $(CURDIR)/$(VENV):$(PATH)

help:
	@echo "make demo   install .venv, run the demo campaign, print the report's path"
	@echo "make torch  install PyTorch into .torch, an environment of its own, for benchmarks that use it"
	@echo "make check  install .venv, lint, run the fast unit tests: for every edit"
	@echo "make test   install .venv, run the tests (TESTS=PATH: only these)"
	@echo "make gates  the gates at full length (at most 40 minutes): before something large lands"
	@echo "make size   lines by package and words of the documentation, beside their budgets"
	@echo "make readme run the README's commands in a fresh clone, and check what they leave"
	@echo "make docs   build the documentation's site in site/, with search; links are checked"
	@echo "make schemas  JSON Schemas of the YAML files in site/schemas/, for editors"
	@echo "make lint   ruff, mypy, snakefmt, snakemake --lint, the documentation"
	@echo "make slurm-up, make slurm-down   boot and stop a Slurm of 4 nodes on this machine"
	@echo "make bench  measure what this project claims about speed (BENCH=\"noop execute\": only these)"
	@echo "make screenshots  update the pictures in docs/images from the demo's report"
	@echo "make lock   resolve requirements.lock and requirements-dev.lock again"

# The locked environment with TensorFlow and Horovod; dev: and what tests and documentation need.
setup:
	@tools/setup.sh
	@python tools/keys.py

dev:
	@tools/setup.sh dev

demo: setup
	@snakemake
	@echo "report: $(CURDIR)/results/report.html"

torch:
	@tools/torch.sh

# Without what is marked slow, or needs Slurm or a browser (CONTRIBUTING.md).
check: lint
	@pytest -n 2 --dist loadfile -m "not slow and not slurm and not browser" tests/unit

# Tests of Slurm mostly wait: they have workers of their own, each with a cluster. The folders whose
# files take longest come first, so that the workers end together.
LONGEST := $(addprefix tests/,acceptance workflow benchmarks report soak)
OTHERS := $(filter-out $(LONGEST),$(patsubst %/,%,$(wildcard tests/*/)))
test: dev
ifdef TESTS
	@pytest -n 2 --dist loadfile $(TESTS)
else
	@log=$$(mktemp); pytest -n 2 --dist loadfile --no-loadscope-reorder -m slurm \
	    tests/acceptance tests/schedulers tests/slurm >$$log 2>&1 & slurm=$$!; \
	pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not slurm" --ignore $(README) \
	    $(LONGEST) $(OTHERS); rest=$$?; wait $$slurm; slurm=$$?; cat $$log; rm $$log; exit $$((rest | slurm))
endif

# What must survive any rewrite (tests/acceptance), at full length.
gates: dev
	@GATES=whole pytest -n 2 --dist loadfile tests/acceptance

size:
	@python3 tools/size.py

# The demo measures: with nothing else on the machine, its sentences are those of a quiet one.
README := tests/workflow/test_readme.py
readme: dev
	@pytest $(README)

# Parts that know nothing of each other run at the same time, the longest first; the output of each
# is in one piece.
LINT := lint-types lint-pages lint-workflow lint-generated lint-style
.PHONY: $(LINT)
lint: dev
	@$(MAKE) --no-print-directory --keep-going --output-sync --jobs=$(shell nproc) $(LINT)

lint-types:
	mypy

# Every link and anchor is checked, and a warning is an error. The pages open without a server.
DOCS := sphinx-build --quiet --fail-on-warning --keep-going -c docs -d site/.doctrees
lint-pages:
	$(DOCS) -b dummy . site

lint-workflow:
	tools/lint_workflow.sh
	snakefmt --check Snakefile workflow/rules

lint-generated:
	python tools/pages.py --check

lint-style:
	ruff check .
	ruff format --check .
	PYTHONPATH=workflow/benchmarks lint-imports --no-logo
	python tools/names.py
	python tools/size.py --check

docs: dev
	@$(DOCS) -b html . site
	@echo "documentation: $(CURDIR)/site/docs/index.html"

schemas: dev
	@python tools/keys.py site/schemas

format: dev
	ruff check --fix .
	ruff format .
	snakefmt Snakefile workflow/rules

bench: dev
	@python -m bench.table $(BENCH)

screenshots: dev
	@python tools/screenshots.py

# A real Slurm on this machine, the one the tests boot (its packages: tests/slurm/cluster.py).
SLURM_FOLDER ?= /tmp/slurm-test

slurm-up:
	@python3 tests/slurm/cluster.py up --folder $(SLURM_FOLDER)

slurm-down:
	@python3 tests/slurm/cluster.py down --folder $(SLURM_FOLDER)

# The locks hold hashes and no download address; uv.lock and pylock.toml would.
COMPILE := .tools/bin/uv pip compile --system-certs --quiet --universal --generate-hashes --no-header --upgrade
lock: dev
	$(COMPILE) --group setup pyproject.toml -o requirements.lock
	$(COMPILE) --group dev -c requirements.lock -o requirements-dev.lock

clean:
	rm -rf .venv .tools .torch .snakemake .pytest_cache .mypy_cache .ruff_cache
