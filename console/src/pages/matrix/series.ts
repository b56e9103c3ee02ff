/** Rows of the matrix as points of a chart: over runs, or over workers. */

import type { MatrixRow } from '../../api';

export type Over = 'runs' | 'workers';

export interface Series {
  /** What its rows have in common; the same rows have the same key, whatever else is shown. */
  key: string;
  name: string;
}

export interface Lines {
  series: Series[];
  /** How many there are beside those that are drawn. */
  left: number;
  /** Positions, then values of each series; null where there are none. */
  data: (number | null)[][];
}

/** Lines at most: more cannot be told apart. */
export const mostLines = 6;

/** The middle one: means of percentiles mean nothing, the middle one was measured. */
export function median(values: number[]): number | null {
  const ordered = values.slice().sort((a, b) => a - b);
  return ordered[Math.floor(ordered.length / 2)] ?? null;
}

/** Where a run stands in its evaluation, without its repeat; empty outside evaluations. */
export const placeOf = ({ evaluation, arm, level }: MatrixRow) =>
  evaluation === null ? '' : [arm, level].filter(Boolean).join(', ');

/** Only runs of the same workload that did the same thing, in the same place of an evaluation, are repeats of each other. */
const keyOf = (row: MatrixRow) =>
  [row.name, row.stage, row.work, row.operation, row.depth, row.config, placeOf(row)].join('\u0000');

/** Names as short as they can be without two series having the same. */
function named(keys: string[]): Series[] {
  const parts = keys.map((key) => {
    const [name = '', stage = '', work = '', operation = '', depth = '', config = '', at = ''] = key.split('\u0000');
    const head = name + (operation ? ` ${operation}` : '') + (at ? `, ${at}` : '');
    const place = `${head} (${stage})`;
    const whole = `${place} ${work}, depth ${depth}`;
    return { key, names: [head, place, whole, `${whole}, ${config}`] };
  });
  const once = (name: string, level: number) => parts.filter(({ names }) => names[level] === name).length === 1;
  return parts.map(({ key, names }) => ({ key, name: names.find(once) ?? names.at(-1)! }));
}

export function series(rows: readonly MatrixRow[], over: Over, value: (row: MatrixRow) => number | null): Lines {
  const groups = new Map<string, MatrixRow[]>();
  for (const row of rows) {
    const key = keyOf(row);
    const own = groups.get(key);
    if (own) own.push(row);
    else groups.set(key, [row]);
  }
  const drawn = [...groups.entries()].sort(([, a], [, b]) => b.length - a.length).slice(0, mostLines);
  const place = (row: MatrixRow) => (over === 'runs' ? row.run : row.workers);
  const points = drawn.map(([, own]) => {
    const at = new Map<number, number[]>();
    for (const row of own) {
      const number = value(row);
      if (number !== null) at.set(place(row), [...(at.get(place(row)) ?? []), number]);
    }
    return at;
  });
  const xs = [...new Set(points.flatMap((at) => [...at.keys()]))].sort((a, b) => a - b);
  return {
    series: named(drawn.map(([key]) => key)),
    left: groups.size - drawn.length,
    data: [xs, ...points.map((at) => xs.map((x) => median(at.get(x) ?? [])))],
  };
}

/** How a series looks: which colour, and which of the strokes of that colour. */
export interface Look {
  colour: number;
  stroke: number;
}

/**
 * Gives looks to series: each keeps its own as long as the page is open, whatever is filtered. A new one gets the colour that
 * is not drawn yet, and of those the one that the fewest have.
 */
export function looks(): (keys: readonly string[]) => Look[] {
  const known = new Map<string, Look>();
  return (keys) => {
    for (const key of keys) {
      if (known.has(key)) continue;
      const drawn = new Set(keys.flatMap((other) => known.get(other)?.colour ?? []));
      const had = (colour: number) => [...known.values()].filter((look) => look.colour === colour).length;
      const weight = (colour: number) => had(colour) + (drawn.has(colour) ? 1e6 : 0);
      const colours = Array.from({ length: mostLines }, (_, colour) => colour);
      const colour = colours.reduce((best, colour) => (weight(colour) < weight(best) ? colour : best));
      known.set(key, { colour, stroke: had(colour) });
    }
    return keys.map((key) => known.get(key)!);
  };
}
