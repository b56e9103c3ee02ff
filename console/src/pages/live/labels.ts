/** How the operations of a work are called and coloured. */

import type { Line } from '../../parts/chart';
import type { Buffer, WorkSeconds } from './buffer';

export function labels(buffer: Buffer, { stage, work, seconds }: WorkSeconds): string[] {
  const known = buffer.stages[stage]?.works[work]?.operations ?? [];
  const many = seconds[seconds.length - 1]?.operations.length ?? known.length;
  return Array.from({ length: many }, (_, index) => known[index] ?? `operation ${index + 1}`);
}

const dashes: (number[] | undefined)[] = [undefined, [7, 3], [2, 3], [9, 3, 2, 3]];

/** As in the reports: a colour and a dash for each operation, for colour is never the only sign. */
export const lineOf = (name: string, index: number): Line => {
  const dash = dashes[index % dashes.length];
  return { name, colour: `--c${index % 6}`, ...(dash ? { dash } : {}) };
};
