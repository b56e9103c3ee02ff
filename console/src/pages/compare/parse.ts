/** Numbers of runs, and shares, as people write them. */

/** Most runs of a range: more is a slip of the pen. */
const most = 200;

/** `12, 14-16` is 12, 14, 15, 16; null where it cannot be read. */
export function parseRuns(text: string): number[] | null {
  const runs: number[] = [];
  for (const part of text.split(/[\s,]+/).filter(Boolean)) {
    const found = /^(\d+)(?:-(\d+))?$/.exec(part);
    if (!found) return null;
    const from = Number(found[1]);
    const to = Number(found[2] ?? found[1]);
    if (from < 1 || to < from || to - from >= most) return null;
    for (let run = from; run <= to; run++) if (!runs.includes(run)) runs.push(run);
  }
  return runs;
}

/** `5 %` or `0.05` is `5%`; empty without a margin, null where it cannot be read or is no share between nothing and all. */
export function parseMargin(text: string): string | null {
  if (!text.trim()) return '';
  const found = /^(\d+(?:\.\d+)?)\s*(%?)$/.exec(text.trim());
  if (!found) return null;
  const percent = Number(found[1]) * (found[2] ? 1 : 100);
  return percent > 0 && percent < 100 ? `${Number(percent.toFixed(6))}%` : null;
}
