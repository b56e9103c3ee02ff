#!/usr/bin/env bash
# Runs every fuzz target for a while (default: a minute each), on the stable compiler.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v cargo-fuzz >/dev/null || { echo "fuzz: cargo-fuzz is missing; cargo install --locked cargo-fuzz" >&2; exit 1; }
seconds=${1:-60}
export RUSTC_BOOTSTRAP=1
for target in $(cargo fuzz list); do
  mkdir -p "fuzz/corpus/$target"
  case $target in
    document) cp -n crates/engines/tests/fixtures/* examples/*.yaml examples/*.xml "fuzz/corpus/$target/" 2>/dev/null || true ;;
  esac
  echo "== $target"
  cargo fuzz run --sanitizer none "$target" -- -max_total_time="$seconds" -max_len=65536 -rss_limit_mb=2048
done
