#!/usr/bin/env bash
# Runs every fuzz target for a while (default: a minute each), on the stable compiler. What is found goes to fuzz/artifacts; as a
# seed, `make test` tries it from then on.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v cargo-fuzz >/dev/null || { echo "fuzz: cargo-fuzz is missing; cargo install --locked cargo-fuzz" >&2; exit 1; }
seconds=${1:-60}
export RUSTC_BOOTSTRAP=1
for target in $(cargo fuzz list); do
  mkdir -p "fuzz/corpus/$target"
  seeds=("fuzz/seeds/$target")
  case $target in
    import) seeds+=(crates/import/src/samples) ;;
    fio_report) seeds+=(crates/fio/tests/fixtures) ;;
    document | evaluation) seeds=(examples crates/engines/tests/fixtures crates/cosbench/tests/fixtures) ;;
  esac
  echo "== $target"
  # What is found to be new is kept in the first directory.
  cargo fuzz run --sanitizer none "$target" "fuzz/corpus/$target" "${seeds[@]}" -- -max_total_time="$seconds" -max_len=65536 -rss_limit_mb=2048
done
