# Kept. `make run` shows what it does, `make test` proves it.
# Paths are relative throughout, so the checkout may lie anywhere, in a folder with a space as well.

python  := .venv/bin/python
kept    := .venv/bin/kept --database sqlite:///.kept/demo.db
compile := $(python) -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
           --custom-compile-command "make requirements" $(if $(UPGRADE),--upgrade)

.PHONY: help run test lint format wheel requirements clean
.NOTPARALLEL:

help:
	@printf '%s\n' \
	  'make run           set up, keep this manual in .kept/demo.db, search it' \
	  'make test          every test, on SQLite and on PostgreSQL (ARGS="-k word" for some of them)' \
	  'make lint          ruff and mypy' \
	  'make format        let ruff put the code in order' \
	  'make wheel         what to install elsewhere, in dist/; with a C compiler its readers are compiled' \
	  'make requirements  pin the dependencies again (UPGRADE=1 for newer ones)' \
	  'make clean         remove everything that these made'

run:
	@sh tools/bootstrap run
	@mkdir -p .kept
	$(kept) add docs --name kept
	$(kept) search "complete old state or the complete new state" --limit 3
	@printf '%s\n' '' \
	  'Keep a site of your own:  .venv/bin/kept add https://docs.example.com' \
	  'Pages, API and MCP:       .venv/bin/kept serve' \
	  'Everything it can do:     .venv/bin/kept --help'

test:
	@sh tools/bootstrap test
	@$(python) -m pytest -n 3 --dist worksteal $(ARGS)

lint:
	@sh tools/bootstrap lint
	@$(python) -m ruff check .
	@$(python) -m ruff format --check .
	@$(python) -m mypy --strict src

format:
	@sh tools/bootstrap lint
	@$(python) -m ruff check --fix .
	@$(python) -m ruff format .

wheel:
	@sh tools/bootstrap lint
	@HATCH_BUILD_HOOK_ENABLE_CUSTOM=true $(python) -m hatchling build -t wheel

# Later sets are constrained by earlier ones, so that one environment can hold them all.
requirements:
	@sh tools/bootstrap run
	@$(python) -m pip install --quiet --disable-pip-version-check uv
	$(compile) requirements/bootstrap.in -o requirements/bootstrap.txt
	$(compile) pyproject.toml requirements/run.in -o requirements/run.txt
	$(compile) pyproject.toml requirements/test.in -o requirements/test.txt
	$(compile) pyproject.toml requirements/lint.in -o requirements/lint.txt
	$(compile) requirements/bench.in -o requirements/bench.txt

clean:
	rm -rf .venv .kept .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist
	find src tests -name __pycache__ -prune -exec rm -rf {} +
