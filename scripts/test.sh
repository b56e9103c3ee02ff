#!/usr/bin/env bash
# Runs all checks, whatever becomes of each, and sums up: `scripts/test.sh [CHECK...]`, by default all of them.
# Ends with 1 if one failed. What each said is in $CARGO_TARGET_DIR/checks.
set -uo pipefail
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
logs=${CARGO_TARGET_DIR:-target}/checks
mkdir -p "$logs"
# What would make the next build faster takes gigabytes, and there is none.
[ "${CI:-}" != true ] || export CARGO_INCREMENTAL=0

format()  { $cargo fmt --all --check; }
clippy()  { $cargo clippy --locked --workspace --all-targets -- -D warnings; }
unit()    { $cargo test --locked --workspace --no-fail-fast; }
# The same build. One at a time: these bring up clusters of their own. What only measures says so in its name.
# Trino is 820 MB to download, and Kubernetes takes minutes to build: their tests, and they alone, are called trino_... and
# kubernetes_..., and run by themselves.
e2e()     { $cargo test --locked --workspace --no-fail-fast -- --ignored --test-threads=1 --skip measures_ --skip trino_ --skip kubernetes_; }
trino()   { $cargo test --locked --workspace --no-fail-fast -- --ignored --test-threads=1 trino_; }
kubernetes() { $cargo test --locked -p tidemark-lab -p tidemark-kubernetes -p tidemark-apiserver -p tidemark-pods --no-fail-fast -- --ignored --test-threads=1 kubernetes_; }
console() { (cd console && npm run lint && npm test); }

checks=("$@")
[ ${#checks[@]} -gt 0 ] || checks=(format clippy unit e2e console)
summary=()
code=0
for check in "${checks[@]}"; do
  if [ "$check" = console ] && ! command -v npm >/dev/null && [ "${CI:-}" != true ]; then
    summary+=("$(printf '%-8s skipped: npm is not installed' "$check")")
    continue
  fi
  echo "== $check"
  began=$SECONDS
  "$check" 2>&1 | tee "$logs/$check.log"
  ended=${PIPESTATUS[0]}
  took=$(printf '%d:%02d min' $(((SECONDS - began) / 60)) $(((SECONDS - began) % 60)))
  if [ "$ended" -eq 0 ]; then
    summary+=("$(printf '%-8s passed  %s' "$check" "$took")")
  else
    code=1
    summary+=("$(printf '%-8s FAILED  %s, see %s' "$check" "$took" "$logs/$check.log")")
    while read -r line; do summary+=("           $line"); done < <(
      grep -E '^test .* \.\.\. FAILED|^error(\[|:)| FAIL  |^Diff in ' "$logs/$check.log" | sort -u | head -n 20)
  fi
  while read -r line; do summary+=("           $line"); done < <(grep -hoE 'SKIPPED: .*' "$logs/$check.log" | sort | uniq -c)
done
echo "== summary"
printf '%s\n' "${summary[@]}"
exit $code
