# Everything a newcomer needs: `make demo` and `make test`.

CARGO ?= cargo
TARGET = $(or $(CARGO_TARGET_DIR),target)
TIDEMARK = $(TARGET)/release/tidemark
CONSOLE = $(shell find console/src console/public console/index.html console/vite.config.ts -type f 2>/dev/null)

.PHONY: demo core build dist test test-trino test-kubernetes lint unit e2e setup bench fuzz docs clean console

## demo: build, compare the embedded object store on disk and in memory, and print the report's path
demo: core
	$(TIDEMARK) run examples/demo.yaml --again --store $(TARGET)/demo/results.db --report $(TARGET)/demo/report.html

## core: $(TIDEMARK), optimised: all but the query engine
core: console
	$(CARGO) build --release --locked -p tidemark

## build: core, and tidemark-lake beside it: the program with the query engine, which loads on tables need (builds longer)
build: core
	$(CARGO) build --release --locked -p tidemark-lake

## dist: both programs in $(TARGET)/dist, optimised across crates: what is released, and what `make bench` measures (builds longer)
dist: console
	$(CARGO) build --profile dist --locked -p tidemark
	$(CARGO) build --profile dist --locked -p tidemark-lake

## console: the web console, embedded in the binary (requires Node.js; everything else builds without it)
console:
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory console/dist/index.html; \
	else echo "npm is not installed: the binary will have no web console"; fi

console/dist/index.html: console/node_modules/.package-lock.json $(CONSOLE)
	cd console && npm run build

console/node_modules/.package-lock.json: console/package.json console/package-lock.json
	cd console && npm ci --no-audit --no-fund && touch node_modules/.package-lock.json

## test: install what the tests need, then run all checks and sum up: format, dependencies, one build with lints, all tests (also those against
## real servers, and some seconds of fuzzing) in one go, the console. What a test needs and does not find is skipped; with CI=true that
## is a failure.
test: setup console
	scripts/test.sh

## test-trino: install what they need, then run the tests with a real Trino, which is fetched with Maven (820 MB, once) and
## needs a Java 24 or later
test-trino:
	scripts/setup-tests.sh
	scripts/test.sh trino

## test-kubernetes: install etcd, containerd and runc, then run the tests with a real Kubernetes, which is built with Go 1.26 or later (some
## minutes, once); those with a node need root
test-kubernetes:
	scripts/setup-tests.sh kubernetes
	scripts/test.sh kubernetes

setup:
	scripts/setup-tests.sh

## lint: format and lints alone
lint:
	scripts/test.sh format clippy

## unit, e2e: the tests that need nothing, and those that need programs or a machine of their own (`#[ignore]`), after `make setup`
unit e2e:
	scripts/test.sh $@

## bench: measure Tidemark and its peers (fio, wrk, pgbench, sysbench, tpchgen-cli, DataFusion alone); the figures are in docs/performance.md
bench: console
	$(CARGO) build --profile dist --locked -p tidemark-bench -p tidemark --features tidemark-bench/peers
	$(TARGET)/dist/tidemark-bench
	$(TARGET)/dist/tidemark-bench fleet

## fuzz: run every fuzz target for a minute (requires `cargo install cargo-fuzz`); `make test` runs them all for seconds, without it
fuzz:
	scripts/fuzz.sh

## docs: manual pages and shell completions into $(TARGET)/docs
docs: core
	mkdir -p $(TARGET)/docs
	$(TIDEMARK) man $(TARGET)/docs
	for shell in bash zsh fish; do $(TIDEMARK) completions $$shell > $(TARGET)/docs/tidemark.$$shell; done

clean:
	$(CARGO) clean
