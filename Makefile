# make run    install, and run DECCS on SYNTH: labels, representation and a picture in out/
# make test   install what is missing; format, lint, types, import direction, tests and doc examples
# make dist   build sdist and wheel, check both, and use the wheel in a fresh environment
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/installed
export DECCS_DATA ?= $(abspath $(wildcard ../shared/data))

.PHONY: run test test-slow fuzz fuzz-runs soak lint format docs notebook dist bench bench-consensus bench-reading bench-scale bench-start bench-serve bench-onnx clean

run: $(STAMP)
	DECCS_DATA= $(BIN)/deccs demo --out out

# Two processes with one thread each: most tests are too small for two threads.
test: lint
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2

test-slow: $(STAMP)
	$(BIN)/pytest -m slow

# 100,000 changed model files; about half an hour. Others with make fuzz SEED=1 COUNT=20000
SEED ?= 0
COUNT ?= 100000
fuzz: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz.models --count $(COUNT) --seed $(SEED) --out results/fuzz.jsonl

# A kill at every file-system call, and thousands of changed run folders and checkpoints; about half an hour.
fuzz-runs: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz.crash_points
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz.run_folders --n 5000 --seed $(SEED)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz.checkpoints --n 3000 --seed $(SEED)

lint: $(STAMP)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# The documentation: its examples run, its links lead somewhere, its tables are those of the code and the records.
docs: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 src tests/test_layout.py tests/paper/test_readme.py

# The notebook beside docs/scanpy.md, with its outputs; a minute. It needs scanpy, igraph and leidenalg, which
# `make` does not install: .venv/bin/pip install -c constraints.txt ".[scanpy]" igraph leidenalg
notebook: $(STAMP)
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python -m tools.notebook --fresh docs/notebooks/scanpy.py

dist: $(STAMP)
	rm -rf dist build
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tools/check_wheel.py dist $(CHECK_WHEEL)

# The loops against the machine's limit and plain loops, whole fits against the published recipe; about 15 minutes.
bench: $(STAMP)
	$(BIN)/python -m deccs_paper.speed

# Every consensus function on 1,000 to 1,000,000 points; about five minutes.
bench-consensus: $(STAMP)
	$(BIN)/python -m deccs_paper.consensus_speed --out runs/consensus-speed.jsonl

# Reading 70,000 x 784 numbers, and 10,000,000 rows without ever having them in memory; about two minutes, 2 GB of disk.
bench-reading: $(STAMP)
	$(BIN)/python -m deccs_paper.reading_speed --out results/reading.jsonl

# Exported models on all rows of the eight data sets; MODELS has one for each, half an hour of fits makes those it lacks.
MODELS ?= runs/models
bench-onnx: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m deccs_paper.export_check $(MODELS) --fit --out results/onnx.jsonl

# Whole fits of 100,000 to 10,000,000 rows in 2.5 GB of memory, how fast rows are labeled, and what several processes change
# (quality, pace, a killed one); an hour, 8 GB of disk. SCALE="--only fit label" does a part.
bench-scale: $(STAMP)
	$(BIN)/python -m deccs_paper.scale.command --out results/scale.jsonl $(SCALE)

# Requests a second of `deccs serve`, 20,000 malformed requests, a kill, a stop while it works; about five minutes.
bench-serve: $(STAMP)
	$(BIN)/python -m deccs_paper.serving_speed --out results/serving.jsonl

# How soon a fitted model answers, from the shell and in Python, before a change and after it; ten minutes.
BEFORE ?= c15e141
bench-start: $(STAMP)
	rm -rf runs/before && mkdir -p runs/before && git archive $(BEFORE) src | tar -x -C runs/before
	$(BIN)/python -m deccs_paper.start_speed --before runs/before/src --out results/start.jsonl --page docs/speed.md

# Fits, predictions, kills, full disks, little memory, damaged files in random order. An hour, or SOAK="--minutes 5 --seed 3";
# `SOAK="--seed 3 --only 17"` repeats an act. Mounting small disks needs root; without it those acts are skipped.
soak: $(STAMP)
	$(BIN)/python -m tools.soak $(SOAK)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf .venv out build dist src/*.egg-info
