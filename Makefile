# The two commands of the README are `make demo` and `make test`; everything installs into .venv,
# and what does not fit there into a second environment.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := -m pip --disable-pip-version-check install
# Packages of others come from the locks (locks/README.md), and pip checks the hash of each file.
LOCKED := $(PIP) --require-hashes
OURS := $(PIP) --no-deps
comma := ,
locks = $(patsubst %,locks/%.txt,$(subst $(comma), ,$(1)))
with = $(patsubst %,-r %,$(1))

# Frameworks for this platform: Apple's GPU, NVIDIA's where its driver is, else the CPU. GNU make
# 4.2.1 starts a command without a shell, which has no program "command", unless it has a character
# of the shell's: hence the redirection.
#
# SECOND is the environment for what does not fit into the first. One environment has one CUDA:
# TensorFlow is built for CUDA 12; JAX and PyTorch get CUDA 13, with MLX for CUDA 13. Apple's
# plug-in needs an old TensorFlow, NumPy and Python. On Linux TensorFlow has no build for Python 3.14.
OS := $(shell uname -s)
FIRST_PYTHONS := 11 14
SECOND_PYTHONS := 11 13
ifeq ($(OS),Darwin)
EXTRAS := mlx,torch,energy
TORCH := locks/torch.txt
SECOND := .venv-tensorflow
SECOND_PYTHONS := 11 12
SECOND_EXTRAS ?= tensorflow-metal
else ifneq ($(shell command -v nvidia-smi 2>/dev/null),)
EXTRAS := tensorflow-cuda,mlx-cuda
FIRST_PYTHONS := 11 13
SECOND := .venv-cu13
SECOND_PYTHONS := 11 14
SECOND_EXTRAS ?= torch,jax-cuda,mlx-cuda13
else
EXTRAS := tensorflow,mlx
TORCH := locks/torch-cpu.txt
ifeq ($(shell $(PYTHON) -c 'import sys; print(sys.version_info >= (3, 14))'),True)
SECOND := .venv-tensorflow
SECOND_EXTRAS ?= tensorflow
endif
endif
SECOND_INSTALLED := $(SECOND:%=%/installed-$(SECOND_EXTRAS))
# The lock of Apple's plug-in is a whole environment.
SECOND_LOCKS = $(if $(filter tensorflow-metal,$(SECOND_EXTRAS)),,locks/agent.txt) $(call locks,$(SECOND_EXTRAS))

BASE := locks/agent.txt locks/server.txt
PARTS := shared/pyproject.toml agent/pyproject.toml server/pyproject.toml
TESTS ?=
JOBS ?= 2
# The short form leaves out what costs most. COMPLETE=1 installs every part that tests need, and
# then a test that is left out is a failure.
SHORT := not long and (smoke or not (engine or process or browser or postgresql))
SELECTED := $(if $(COMPLETE),not long,$(SHORT))
SWITCH := $(if $(COMPLETE),--complete)
MINOR ?= 13
OTHER := .venv-3.$(MINOR)
# A test's neighbours stay with it, and what they share is made once for them.
PYTEST := $(BIN)/python -m pytest --ignore tests/documents --numprocesses $(JOBS) --dist worksteal $(SWITCH)

.PHONY: help install frameworks demo test test-all test-python test-deploy lint types audit audit-dependencies faults serve migrate screenshots locks check-mac check-gpu release-check clean benchmark-accuracy benchmark-fidelity benchmark-recipes benchmark-server benchmark-sizes benchmark-asks test-faults test-soak

help: ## Show the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-20s%s\n", $$1, $$2}' Makefile

$(VENV)/installed-$(EXTRAS): $(PARTS) $(BASE) $(call locks,$(EXTRAS))
	@sh deploy/virtual_environment.sh $(VENV) $(FIRST_PYTHONS) $(PYTHON)
	@echo 'Installing Trainmark and its frameworks ($(EXTRAS)) into $(VENV): this takes some minutes.'
	$(BIN)/python $(LOCKED) $(call with,$(BASE) $(call locks,$(EXTRAS))) && $(BIN)/python $(OURS) -e ./shared -e ./agent -e ./server || { $(PYTHON) deploy/install_failed.py $(EXTRAS); exit 1; }
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed-$(EXTRAS) locks/tools.txt
	@echo 'Installing what the tests need into $(VENV).'
	$(BIN)/python $(LOCKED) -r locks/tools.txt
	@touch $@

$(VENV)/set-up: $(VENV)/installed-dev tests/set_up.py
	@$(BIN)/python -m tests.set_up
	@touch $@

install: $(VENV)/installed-$(EXTRAS) $(SECOND_INSTALLED) ## Agent, server, and this platform's TensorFlow and MLX into .venv; what does not fit there into a second environment.

ifdef SECOND
# Without a Python for it the rest is installed all the same, and the next call tries again.
IN_SECOND = test ! -x $(SECOND)/bin/python ||
$(SECOND_INSTALLED): $(VENV)/installed-$(EXTRAS) $(SECOND_LOCKS)
	@sh deploy/virtual_environment.sh $(SECOND) $(SECOND_PYTHONS) $(BIN)/python || echo 'Goes on without $(SECOND_EXTRAS).'
	@$(IN_SECOND) echo 'Installing $(SECOND_EXTRAS) into $(SECOND): this takes some minutes.'
	$(IN_SECOND) $(SECOND)/bin/python $(LOCKED) $(call with,$(SECOND_LOCKS))
	$(IN_SECOND) $(SECOND)/bin/python $(OURS) -e ./shared -e ./agent
	$(IN_SECOND) $(BIN)/bench-agent environments add $(SECOND)
	@$(IN_SECOND) touch $@
endif

ifdef TORCH
frameworks: $(VENV)/installed-$(EXTRAS) ## Add JAX and PyTorch (outside macOS its usual wheel brings CUDA: gigabytes); make install has them where NVIDIA's driver is.
	$(BIN)/python $(LOCKED) -r locks/jax.txt
	$(BIN)/python $(PIP) -r $(TORCH)
else
frameworks: $(SECOND_INSTALLED)
endif

demo: $(VENV)/installed-$(EXTRAS) ## Measure this machine, post to a local server, show the leaderboard (ONCE=1: check and stop; ARGS="--framework mlx").
	@$(BIN)/python deploy/demo.py $(if $(ONCE),--once) $(ARGS)

test: $(if $(COMPLETE),$(VENV)/set-up,$(VENV)/installed-dev) ## Tests of some minutes, two at a time (JOBS=1: one); COMPLETE=1: with PostgreSQL, four frameworks and Chromium.
	$(PYTEST) -m '$(SELECTED)' --timeout 300 $(TESTS)

test-all: $(VENV)/set-up ## The long ones too: kill, fault and fuzz runs.
	$(PYTEST) $(TESTS)

test-python: ## The protocol's tests and a measured result under another Python, in an environment of its own (MINOR=13).
	@sh deploy/virtual_environment.sh $(OTHER) $(MINOR) $(MINOR) python3.$(MINOR)
	$(OTHER)/bin/python $(LOCKED) --no-compile --quiet $(call with,$(BASE) locks/tensorflow.txt locks/mlx.txt locks/tools.txt)
	$(OTHER)/bin/python $(OURS) --quiet -e ./shared -e ./agent -e ./server
	$(OTHER)/bin/python -m pytest --numprocesses $(JOBS) --timeout 300 tests/protocol tests/system/test_first_light.py

test-deploy: $(VENV)/installed-dev ## The site of docker-compose.yml without containers: proxy, two servers, roles, backup, restore (a minute; needs PostgreSQL and openssl).
	@PYTHONPATH=. $(BIN)/python -m tests.evidence.deployment

lint: $(VENV)/installed-dev types ## Format, rules, types, import contracts, documents.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest tests/documents

types: $(VENV)/installed-dev ## Strict type check.
	$(BIN)/mypy --no-incremental shared/src agent/src server/src

audit-dependencies: $(VENV)/installed-dev ## Known vulnerabilities of every pin (asks osv.dev; without an answer it says so), and licences of what is installed.
	@$(BIN)/python -m deploy.audit_dependencies $(ARGS)

audit: $(VENV)/installed-dev ## Attack a server in every way we know, and show how each is found (five minutes; MUTATIONS=500: fewer envelopes and requests; ARGS="--only forged").
	@MUTATIONS=$(or $(MUTATIONS),10000) PYTHONPATH=. $(BIN)/python -W ignore -m tests.evidence.audit $(ARGS)

test-faults: $(VENV)/installed-dev ## Kill server and database, cut the network, fill the disk; nothing may be lost (KILLS=1000; ARGS="--only proxy").
	@PYTHONPATH=. $(BIN)/python -m tests.evidence.outages $(ARGS)

test-soak: $(VENV)/installed-dev ## Mixed load for MINUTES=30: is the memory of server and agent flat (ARGS="--database postgresql")?
	@PYTHONPATH=. $(BIN)/python -m tests.evidence.outages.soak $(ARGS)

faults: $(VENV)/installed-dev frameworks ## Plant faults in the agent, and show which check detects each (a quarter of an hour; ARGS="--only B1,B17"; ARGS="--honest 200" for false alarms).
	@PYTHONPATH=. nice $(BIN)/python -m tests.evidence.faults $(ARGS)

serve: $(VENV)/installed-$(EXTRAS) migrate ## A server on this machine.
	$(BIN)/bench-server serve

migrate: $(VENV)/installed-$(EXTRAS) ## Bring the database to the newest schema.
	$(BIN)/bench-server migrate

screenshots: $(VENV)/set-up ## Take the pictures in docs/screenshots again.
	$(BIN)/python -m tests.pages.screenshots

locks: $(VENV)/installed-dev ## Write locks/ again after a change of requirements (needs the package index; ARGS=--upgrade: newest versions; --check: name what changes).
	$(BIN)/python -m deploy.locks $(ARGS)

pin-images: ## Pin each container image to the digest that its tag has now (needs docker and the registries).
	@deploy/pin_images.sh

check-mac: $(VENV)/installed-dev ## macOS without a Mac: its wheels and their symbols, Apple's commands as stand-ins, the engines with its versions (an hour or more, 4 GB; ARGS="--only symbols").
	@PYTHONPATH=. $(BIN)/python -m tests.evidence.mac $(ARGS)

check-gpu: $(VENV)/installed-dev ## The first hour on an NVIDIA GPU: pack a folder for a machine without a network (ARGS="pack FOLDER"), run a step (ARGS="facts"), write the measured limits into source and documents (ARGS="apply FILE").
	@PYTHONPATH=. $(BIN)/python -m tests.evidence.gpu $(ARGS)

.release/bin/twine: locks/release.txt
	@$(PYTHON) -m venv .release
	@.release/bin/python $(LOCKED) --quiet -r locks/release.txt

release-check: .release/bin/twine ## Build the three distributions, install each alone, run them from their wheels (some minutes; dist/).
	@.release/bin/python -m deploy.release_check

clean: ## Remove the virtual environments, the demo's database, the proxy and the Mac's wheels.
	rm -rf $(VENV) $(SECOND) .venv-3.* .demo .benchmark .test-deploy .check-mac .release dist

benchmark-fidelity: $(VENV)/installed-dev frameworks ## The agent's figures beside bare loops of all four frameworks (half an hour; ARGS="--frameworks jax --pairs 9").
	$(BIN)/python benchmarks/fidelity.py $(ARGS)

benchmark-accuracy: $(VENV)/installed-dev frameworks ## Accuracy of each recipe after all epochs, over seeds (hours, needs real data; ARGS="--workloads fashion-mlp --seeds 2").
	$(BIN)/python benchmarks/accuracy.py $(ARGS)

benchmark-server: $(VENV)/installed-dev ## Results a second, questions on 1 million, LNT and MLflow beside it (half an hour, needs wrk; ARGS="--sizes 1000 --no-peers").
	PYTHONPATH=. $(BIN)/python -m benchmarks.server $(ARGS)

benchmark-sizes: $(VENV)/installed-dev ## Bytes of each table and index, extrapolated to 50 million results (minutes; ARGS="--sizes 10000,50000 --check 1000000").
	PYTHONPATH=. $(BIN)/python -m benchmarks.server.sizes $(ARGS)

benchmark-recipes: $(VENV)/installed-dev frameworks ## Each recipe beside naive, tuned beside bare loops (an hour and a half; ARGS="--workloads fashion-mlp --pairs 1").
	$(BIN)/python benchmarks/recipes.py $(ARGS)

benchmark-asks: $(VENV)/installed-dev ## The daily draw of asks on a log of 100,000 results (a minute; ARGS="--sizes 1000 --runs 20").
	PYTHONPATH=. $(BIN)/python -m benchmarks.asks $(ARGS)
