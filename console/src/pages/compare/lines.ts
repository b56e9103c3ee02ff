/** What both groups did, as lines of charts. */

import type { ComparedOperation, ComparedSecond, ComparedSide } from '../../api';
import type { Line } from '../../parts/chart';

/** Runs of a group that are drawn: more lines hide each other. */
const mostRuns = 6;

/** A chart's lines and their points. */
export interface Drawing {
  lines: Line[];
  /** Positions, then the values of each line. */
  data: (number | null)[][];
}

const colours = { a: '--c0', b: '--c1' };
/** Repeats of a group have its colour and strokes of their own. */
const dashes = [undefined, [6, 4], [2, 3], [10, 3, 2, 3], [1, 2], [14, 4]];

const sides = ({ a, b }: ComparedOperation): ['a' | 'b', ComparedSide][] =>
  (
    [
      ['a', a],
      ['b', b],
    ] as const
  ).flatMap(([name, side]) => (side ? [[name, side]] : []));

/** Every run of both groups over the time since the work's start. */
export function overTime(operation: ComparedOperation, value: (second: ComparedSecond) => number): Drawing {
  const runs = sides(operation).flatMap(([side, { runs }]) =>
    runs.slice(0, mostRuns).map((run, index) => ({ side, index, run })),
  );
  const positions = [...new Set(runs.flatMap(({ run }) => run.seconds.map(({ at }) => at)))].sort((a, b) => a - b);
  const lines = runs.map(({ side, index, run }): Line => {
    const dash = dashes[index % dashes.length];
    return { name: `${side.toUpperCase()}: run ${run.run}`, colour: colours[side], ...(dash ? { dash } : {}) };
  });
  const points = runs.map(({ run }) => {
    const known = new Map(run.seconds.map((second) => [second.at, value(second)]));
    return positions.map((at) => known.get(at) ?? null);
  });
  return { lines, data: [positions, ...points] };
}

/** Runs that are not drawn. */
export const undrawn = (operation: ComparedOperation): number =>
  sides(operation).reduce((sum, [, { runs }]) => sum + Math.max(0, runs.length - mostRuns), 0);

/** How far beyond the last nine a position lies: 99 % is 2, 99.9 % is 3. All of them are put one nine further. */
const nines = (share: number) => -Math.log10(1 - share);
const last = Math.round(nines(0.9999)) + 1;

/** The curve of latencies of both groups: from the median, each nine as wide as the one before. */
export function curves(operation: ComparedOperation): Drawing {
  const known = sides(operation).filter(([, { percentiles_us }]) => percentiles_us.length > 0);
  const shares = [...new Set(known.flatMap(([, side]) => side.percentiles_us.map(([share]) => share)))]
    .filter((share) => share >= 0.5)
    .sort((a, b) => a - b);
  return {
    lines: known.map(([side, { runs }]) => ({
      name: `${side.toUpperCase()}${runs.length > 1 ? `: ${runs.length} runs` : ''}`,
      colour: colours[side],
    })),
    data: [
      shares.map((share) => (share === 1 ? last : nines(share))),
      ...known.map(([, side]) => {
        const values = new Map(side.percentiles_us);
        return shares.map((share) => values.get(share) ?? null);
      }),
    ],
  };
}

/** The percentile at a position of [`curves`]: `p99.9`. */
export function percentileAt(position: number): string {
  if (position >= last) return 'max';
  const share = 100 * (1 - 10 ** -position);
  return `p${Number(share.toFixed(position > 3 ? 3 : 2))}`;
}

/** The percentile of a side, microseconds; null where it is not known. */
export const percentile = (side: ComparedSide, share: number): number | null =>
  side.percentiles_us.find(([known]) => known === share)?.[1] ?? null;

/** How much more or less B is than A: `+4.2 %`. */
export function changeOf(a: number | null, b: number | null): string {
  if (a === null || b === null || a === 0) return '–';
  const percent = (b / a - 1) * 100;
  const digits = Math.abs(percent) < 10 ? 1 : 0;
  const text = Math.abs(percent).toFixed(digits);
  return Number(text) === 0 ? '±0 %' : `${percent > 0 ? '+' : '−'}${text} %`;
}
