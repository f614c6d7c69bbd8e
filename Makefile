# make run   install and run DECCS on SYNTH: labels, representation and a picture in out/
# make test  install and run lint, types, import direction, tests and doc examples
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/installed
export DECCS_DATA ?= $(wildcard ../shared/data)

.PHONY: run test test-slow lint bench bench-consensus clean

run: $(STAMP)
	DECCS_DATA= $(BIN)/deccs demo --out out

# Two processes of one thread each: most tests are too small for two threads.
test: lint
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2

test-slow: $(STAMP)
	$(BIN)/pytest -m slow

# The loops against the machine's limit and plain loops, whole fits against the published recipe; about 15 minutes.
bench: $(STAMP)
	$(BIN)/python -m deccs_paper.speed

# Every consensus function on 1,000 to 1,000,000 points; about five minutes.
bench-consensus: $(STAMP)
	$(BIN)/python -m deccs_paper.consensus_speed --out runs/consensus-speed.jsonl

lint: $(STAMP)
	$(BIN)/ruff check src tests
	$(BIN)/mypy
	$(BIN)/lint-imports

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf .venv out build *.egg-info
