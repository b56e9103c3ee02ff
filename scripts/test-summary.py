"""Sums up checks: `test-summary.py LOGS CHECK...`, with what scripts/test.sh left of each in LOGS. Ends with 1 if one failed.

Of each check there is CHECK.log, CHECK.ended (its exit code and its seconds) if it was run, and CHECK.xml (JUnit) if it is made of
tests. What failed is quoted last, so that it is seen at the end of a long log.
"""

import re
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

# How many lines are quoted of one that failed, of all of them, and of all that are flaky; and how many are named.
OF_ONE, OF_ALL, OF_FLAKY, NAMED = 20, 60, 40, 25
NOISE = re.compile(r"^\s*\d+: |^\s+at |^stack backtrace:|^note: |^\s*$|^running \d|^failures:$|^test ")


def output(element):
    """What a test printed."""
    return "\n".join(part.text or "" for part in element if part.tag in ("system-out", "system-err"))


def quote(why, text):
    """Why a test failed, in its own words: the last lines, or those from its last panic on, which comes before what is printed while servers are stopped."""
    lines = [line.rstrip()[:500] for line in text.splitlines() if not NOISE.match(line)]
    panics = [number for number, line in enumerate(lines) if " panicked at " in line]
    return lines[panics[-1] :][:OF_ONE] if panics else [why, *lines[-OF_ONE:]]


def printed(title, quoted, most):
    """Prints what tests said, as long as there are lines left."""
    for name, lines in quoted[:NAMED]:
        print(f"-- {title}: {name}")
        shown = lines[: max(0, most)]
        most -= len(shown)
        for line in shown:
            print(f"   {line}")
    if len(quoted) > NAMED:
        print(f"-- {title}: {len(quoted) - NAMED} more")


def main(logs, checks):
    """Prints the summary; returns the exit code."""
    passed, failed, flaky, skipped, table = 0, [], [], Counter(), []
    for check in checks:
        log = logs / f"{check}.log"
        text = log.read_text(errors="replace") if log.exists() else ""
        ended = logs / f"{check}.ended"
        if not ended.exists():
            table.append(f"{check:<10} not run")
            continue
        code, seconds = map(int, ended.read_text().split())
        report = logs / f"{check}.xml"
        broken = 0
        if report.exists():
            for case in ElementTree.parse(report).iter("testcase"):
                name = f"{case.get('classname')} {case.get('name')}"
                wrong = [part for part in case if part.tag in ("failure", "error")]
                tries = [part for part in case if part.tag.startswith("flaky")]
                if wrong:
                    broken += 1
                    # Vitest reports no output, but all in the failure.
                    text = output(case) or wrong[0].text or ""
                    failed.append((name, quote(wrong[0].get("message") or "", text)))
                    continue
                if tries:
                    flaky.append((name, quote(tries[0].get("message") or "", output(tries[0]))))
                reasons = re.findall(r"SKIPPED: .*", output(case))
                reasons += [f"SKIPPED: {name}" for part in case if part.tag == "skipped"]
                skipped.update(reasons[:1])
                passed += not reasons
        elif code == 0:
            reasons = re.findall(r"^SKIPPED: .*", text, re.MULTILINE)
            skipped.update(reasons[:1])
            passed += not reasons
        if code != 0 and not broken:
            # Compilers say what is wrong at the first error, everything else at the end.
            errors = re.search(r"^(error|warning)(\[\w+\])?: .*", text, re.MULTILINE)
            lines = text[errors.start() :].splitlines()[:OF_ONE * 2] if errors else text.splitlines()[-OF_ONE * 2 :]
            failed.append((f"{check}, see {log}", lines))
        state = "passed" if code == 0 else "FAILED"
        table.append(f"{check:<10} {state}  {seconds // 60}:{seconds % 60:02} min")
    print("== summary")
    for reason, count in sorted(skipped.items()):
        print(f"{count} {reason}")
    printed("FLAKY", flaky, OF_FLAKY)
    printed("FAILED", failed, OF_ALL)
    print("\n".join(table))
    print(f"{passed} passed, {len(failed)} failed, {skipped.total()} skipped")
    return int(bool(failed))


sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
