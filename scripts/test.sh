#!/usr/bin/env bash
# Runs all checks, whatever becomes of each, and sums up: `scripts/test.sh [CHECK...]`, by default all of them.
# Ends with 1 if one failed. What each said is in $CARGO_TARGET_DIR/checks. A test that fails is run once more, alone among the tests of its
# check: one that passes then does not fail always, and the sum names it, with what it said, as FLAKY.
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
# Of the tests that are given, those of the check named first.
again()   { $cargo test --locked --workspace --tests --no-fail-fast -- --test-threads=1 $([ "$1" = unit ] || echo --ignored) --exact "${@:2}"; }
# The same build. Tests of documentation are the others'. One at a time: these bring up clusters of their own. What only measures says so in its name.
# Trino is 820 MB to download, and Kubernetes takes minutes to build: their tests, and they alone, are called trino_... and
# kubernetes_..., and run by themselves.
e2e()     { $cargo test --locked --workspace --tests --no-fail-fast -- --ignored --test-threads=1 --skip measures_ --skip trino_ --skip kubernetes_; }
trino()   { $cargo test --locked --workspace --no-fail-fast -- --ignored --test-threads=1 trino_; }
kubernetes() { $cargo test --locked --workspace --tests --no-fail-fast -- --ignored --test-threads=1 kubernetes_; }
console() { (cd console && npm run lint && npm test); }

# The names of the tests that failed, by the log of a check; none if it was not seen to its end, or something else failed, too: a build, a
# program that was killed, an example in the documentation, two tests of one name.
failing() {
  grep -qE '^error: [0-9]+ targets? failed:' "$1" || return
  ! grep -qE '^error(\[|: could not compile)|\(signal: |^test .* - .* \.\.\. FAILED' "$1" || return
  awk '/^failures:$/ { listed = 1 } /^test result: FAILED/ { listed = 0; failed += $6 } listed && /^    [^ ]+$/ && !seen[$1]++ { names[++count] = $1 }
    END { if (count == failed) for (i = 1; i <= count; i++) print names[i] }' "$1"
}

# What failing tests said, by the log of a check, without their backtraces.
said() {
  awk '/^---- .* stdout ----$/ { lines = 25 } /^failures:$/ { lines = 0 }
    lines > 0 && !/^ +[0-9]+: |^ +at |^stack backtrace:|^$/ { print substr($0, 1, 1000); lines-- }' "$1"
}

# Runs a check, notes what it says and how long it took, and sums it up in a file.
check() {
  local check=$1 began=$SECONDS ended took tests flaky=
  echo "== $check"
  "$check" 2>&1 | tee "$logs/$check.log"
  ended=${PIPESTATUS[0]}
  mapfile -t tests < <(failing "$logs/$check.log")
  if [ "$ended" -ne 0 ] && [ ${#tests[@]} -gt 0 ] && [ "$check" != console ]; then
    echo "== $check, once more: ${tests[*]}"
    again "$check" "${tests[@]}" 2>&1 | tee "$logs/$check.again.log"
    ended=${PIPESTATUS[0]}
    # As many as failed must have passed.
    [ "$(grep -cE '^test .* \.\.\. ok$' "$logs/$check.again.log")" -ge ${#tests[@]} ] || ended=1
    [ "$ended" -ne 0 ] || flaky=yes
  fi
  took=$(printf '%d:%02d min' $(((SECONDS - began) / 60)) $(((SECONDS - began) % 60)))
  {
    if [ "$ended" -eq 0 ]; then
      printf '%-8s passed  %s\n' "$check" "$took"
    else
      printf '%-8s FAILED  %s, see %s\n' "$check" "$took" "$logs/$check.log"
      grep -E '^test .* \.\.\. FAILED|^error(\[|:)| FAIL  |^Diff in ' "$logs/$check.log" | sort -u | head -n 20 | sed 's/^/           /'
    fi
    [ -z "$flaky" ] || printf '           FLAKY: %s\n' "${tests[@]}"
    said "$logs/$check.log" | head -n 100 | sed 's/^/           /'
    grep -hoE 'SKIPPED: .*' "$logs/$check.log" | sort | uniq -c | sed 's/^ */           /'
  } >"$logs/$check.sum"
}

checks=("$@")
[ ${#checks[@]} -gt 0 ] || checks=(format clippy unit e2e console)
if [[ " ${checks[*]} " = *" console "* && "${CI:-}" != true ]] && ! command -v npm >/dev/null; then
  echo "console skipped: npm is not installed"
  checks=("${checks[@]/console/}")
fi
beside=
for check in ${checks[*]}; do
  rm -f "$logs/$check.sum"
  # These mostly wait for servers: everything else runs meanwhile, as soon as all tests are built.
  if [ "$check" = e2e ] && [ ${#checks[@]} -gt 1 ]; then
    beside=e2e
  fi
done
if [ -n "$beside" ]; then
  echo "== building the tests"
  $cargo test --locked --workspace --no-run || beside=
fi
if [ -n "$beside" ]; then
  echo "== e2e goes on beside the others; what it says is in $logs/e2e.log, and below when it is over"
  check e2e >/dev/null &
fi
for check in ${checks[*]}; do
  [ "$check" = "$beside" ] || check "$check"
done
if [ -n "$beside" ]; then
  wait
  echo "== e2e"
  cat "$logs/e2e.log"
fi
code=0
echo "== summary"
for check in ${checks[*]}; do
  cat "$logs/$check.sum" || code=1
  ! grep -q "^$check *FAILED" "$logs/$check.sum" || code=1
done
exit $code
