# Two commands are all a newcomer types: `make up` and `make test`. Both install what they need first (`make setup`).
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup up down test test-cluster test-coreos test-agent-image test-ironic-38 lint style types imports pytest bench lock docs clean

TOOLS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/ingot/tools
BIN := .venv/bin
BESIDE := tests/unit/agent tests/unit/formats tests/unit/images
ALSO_ON_CLUSTER := tests/unit/provisioner/test_ownership_provisioning.py tests/unit/machines/test_machines_machineset_life.py \
    tests/unit/machines/test_machines_remediation_whole.py tests/unit/images/test_controller_life.py
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header
# What setup fetched for itself comes last: a kubectl that is installed is preferred.
export PATH := $(PATH):$(TOOLS)/bin
# Where the environment forbids Python to keep what it compiled, each of the hundred processes of a test run compiles it all again.
export PYTHONDONTWRITEBYTECODE :=

help:  ## what can be made
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup:  ## install what is needed: uv, the locked packages in .venv, kubectl, Ironic's own environment
	@tools/setup

up: setup  ## start everything on this machine, with three simulated servers (Ctrl-C stops it)
	@$(BIN)/ingot up

down:  ## stop what `make up` (or `ingot up --detach`) started
	@$(BIN)/ingot down

test: lint pytest  ## everything that must hold: style, types, imports, all tests

lint: setup style types imports  ## style, types and import rules, in seconds

style:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types:
	$(BIN)/mypy

imports:
	$(BIN)/lint-imports --no-cache

# Whole systems spend their time waiting for servers to boot, so there is room for some of them beside everything else. Lanes that
# end early take over some of the longest.
pytest:
	@tools/lanes '$(BIN)/pytest tests/unit tests/api $(addprefix --ignore=,$(BESIDE) tests/unit/hosts tests/unit/machines)' \
	    '$(BIN)/pytest tests/e2e tests/kubectl; whole=$$?; $(BIN)/pytest $(BESIDE) && exit $$whole' \
	    '$(BIN)/pytest tests/integration/test_farm_*.py; farm=$$?; $(BIN)/pytest tests/unit/hosts tests/unit/machines && exit $$farm' \
	    '$(BIN)/pytest tests/integration --ignore-glob="*/test_farm_*.py"'

# And those tests of the embedded API that need clients which are built with the cluster, and are there now. Then Machines with Ironic
# and the farm, and the lives that unit tests lead on the embedded API, each on a cluster of their own: they look after all namespaces.
test-cluster: setup  ## the tests of the API, of hosts and of Machines on a real kube-apiserver; it is built first, once (10 min)
	@tools/kubernetes/build
	@tools/lanes '$(BIN)/python tests/cluster $(BIN)/pytest tests/api tests/cluster tests/kubectl' \
	    '$(BIN)/pytest tests/api -k "built or clients_go or clients_applying"; clients=$$?; \
	    $(BIN)/python tests/cluster $(BIN)/pytest tests/integration/test_farm_machines.py; farm=$$?; \
	    $(BIN)/python tests/cluster $(BIN)/pytest $(ALSO_ON_CLUSTER) && exit $$((clients + farm))'

test-coreos: setup  ## our image commands beside the real coreos-installer; the first time it is built (7 min)
	@tools/coreos-installer/build
	$(BIN)/pytest tests/coreos

test-agent-image: setup  ## the agent's container: built, and its root file system run; the first time takes minutes
	$(BIN)/pytest tests/agent_image

test-ironic-38: setup  ## the service, the plugin and push with every version of Ironic, and hosts that live on 38; it is installed first (1 min)
	$(BIN)/pytest tests/versions

bench: setup  ## measure, and print the figures (never part of the tests)
	@$(BIN)/python -m bench $(BENCH)

lock: setup  ## pin what pyproject.toml and the list for Ironic ask for, with hashes
	cd src/ingot/services/environments && for version in 38 39; do $(LOCK) -o ironic-$$version.lock ironic-$$version.in || exit; done
	cd tests/integration && $(LOCK) -o openstacksdk.lock openstacksdk.in
	cd deploy/agent && $(LOCK) -o agent-13.lock agent-13.in
	$(LOCK) -o requirements.lock --group dev pyproject.toml

docs: setup  ## write the pages that are made from the code (docs/node-states.md)
	$(BIN)/python -m ingot.provisioner.ironic.pairs_page >docs/node-states.md

clean:  ## remove .venv and the caches in this folder
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
