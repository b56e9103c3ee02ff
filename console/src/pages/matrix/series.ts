/** Rows of the matrix as points of a chart: over runs, or over workers. */

import type { MatrixRow } from '../../api';

export type Over = 'runs' | 'workers';

export interface Series {
  operations: string[];
  /** Positions, then values of each operation; null where there are none. */
  data: (number | null)[][];
}

/** Operations at most: more lines cannot be told apart. */
const mostOperations = 6;

/** The middle one: means of percentiles mean nothing, the middle one was measured. */
export function median(values: number[]): number | null {
  const ordered = values.slice().sort((a, b) => a - b);
  return ordered[Math.floor(ordered.length / 2)] ?? null;
}

export function series(rows: readonly MatrixRow[], over: Over, value: (row: MatrixRow) => number | null): Series {
  const counts = new Map<string, number>();
  for (const row of rows) counts.set(row.operation, (counts.get(row.operation) ?? 0) + 1);
  const operations = [...counts.entries()]
    .sort(([, a], [, b]) => b - a)
    .slice(0, mostOperations)
    .map(([name]) => name);
  const places = new Map<number, Map<string, number[]>>();
  for (const row of rows) {
    const number = value(row);
    if (number === null || !operations.includes(row.operation)) continue;
    const x = over === 'runs' ? row.run : row.workers;
    const at = places.get(x) ?? new Map<string, number[]>();
    places.set(x, at);
    at.set(row.operation, [...(at.get(row.operation) ?? []), number]);
  }
  const xs = [...places.keys()].sort((a, b) => a - b);
  const line = (name: string) => xs.map((x) => median(places.get(x)?.get(name) ?? []));
  return { operations, data: [xs, ...operations.map(line)] };
}
