/** What drivers did over time, as rows of values. */

import type { LiveSecond, LiveShare } from '../../api';

export type Metric = 'ok' | 'failed' | 'p99_us' | 'busy';

export interface Strips {
  /** Names of the rows. */
  names: string[];
  /** The second of the first column. */
  start: number;
  columns: number;
  /** Row by row; null where a driver told nothing. */
  values: (number | null)[][];
}

/** Columns at most: more cannot be told apart. */
const mostColumns = 600;

/** Rows of all these drivers, and of others that told something. */
export function strips(
  seconds: readonly LiveSecond[],
  span: number,
  metric: Metric,
  all: readonly string[] = [],
): Strips {
  const end = seconds[seconds.length - 1]?.index ?? 0;
  const columns = Math.max(1, Math.min(span, mostColumns, end - (seconds[0]?.index ?? 0) + 1));
  const start = end - columns + 1;
  const rows = new Map<string, (number | null)[]>();
  for (const name of all)
    rows.set(
      name,
      Array.from({ length: columns }, () => null),
    );
  for (const second of seconds) {
    if (second.index < start) continue;
    for (const share of second.drivers) {
      let row = rows.get(share.driver);
      if (!row) rows.set(share.driver, (row = Array.from({ length: columns }, () => null)));
      row[second.index - start] = share[metric];
    }
  }
  const names = [...rows.keys()].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  return { names, start, columns, values: names.map((name) => rows.get(name) ?? []) };
}

/** A driver in the latest second. */
export interface DriverNow extends LiveShare {
  /** Its successes as a share of the median driver's. */
  ofMedian: number;
}

export function driversNow(seconds: readonly LiveSecond[]): DriverNow[] {
  // The latest seconds may have been told without any driver's share.
  const shares = seconds.findLast((second) => second.drivers.length > 0)?.drivers ?? [];
  const ordered = shares.map((share) => share.ok).sort((a, b) => a - b);
  const median = ordered[Math.floor(ordered.length / 2)] ?? 0;
  return shares.map((share) => ({ ...share, ofMedian: median > 0 ? share.ok / median : 1 }));
}
