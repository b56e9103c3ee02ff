/** What charts of a run point out: stages, warm-up, silent and lost drivers, failures, a cancellation. */

import type { LiveMark, LiveSecond } from '../../api';
import type { Band, Mark } from '../../parts/chart';
import { type Buffer, offset, origin, type WorkSeconds } from './buffer';

const looks: Record<LiveMark['kind'], Pick<Mark, 'tone' | 'letter'>> = {
  driver_silent: { tone: 'warn', letter: 'S' },
  driver_back: { tone: 'good', letter: 'B' },
  driver_lost: { tone: 'bad', letter: 'L' },
  failures: { tone: 'bad', letter: '!' },
  cancelled: { tone: 'note', letter: 'C' },
};

export const marks = (buffer: Buffer): Mark[] =>
  buffer.marks.map(({ unix_ms, kind, text }) => ({
    at: Math.max(0, (unix_ms - origin(buffer)) / 1000),
    text,
    ...looks[kind],
  }));

/** Whether a second measured nothing although operations ended in it: before the window, or after it. */
const outside = (second: LiveSecond) =>
  second.unmeasured > 0 && second.operations.every((of) => of.ok + of.failed === 0);

/** Stretches of seconds that have something. */
function stretches(seconds: readonly LiveSecond[], has: (second: LiveSecond) => boolean): [number, number][] {
  const found: [number, number][] = [];
  for (const second of seconds) {
    if (!has(second)) continue;
    const last = found[found.length - 1];
    if (last && last[1] === second.index) last[1] = second.index + 1;
    else found.push([second.index, second.index + 1]);
  }
  return found;
}

export function bands(buffer: Buffer, works: readonly WorkSeconds[]): Band[] {
  const begun = origin(buffer);
  const stages = buffer.stages.flatMap((stage): Band[] => {
    if (stage.started_unix_ms === null) return [];
    const to = stage.ended_unix_ms ?? Date.now();
    const place = (at: number) => Math.max(0, (at - begun) / 1000);
    return [{ from: place(stage.started_unix_ms), to: place(to), look: 'plain', text: stage.name || stage.id }];
  });
  const own = works.flatMap((work) => {
    const at = offset(buffer, work);
    const band = (look: Band['look'], text: string) => (ends: [number, number]) => ({
      from: at + ends[0] - 0.5,
      to: at + ends[1] - 0.5,
      look,
      text,
    });
    // Where the document does not say when the window begins, the first second that measured something does.
    const planned = buffer.stages[work.stage]?.works[work.work]?.window_start_ms ?? null;
    const first = work.seconds.find((second) => !outside(second))?.index ?? Infinity;
    const begins = planned === null ? first : planned / 1000;
    const later = (second: LiveSecond) => outside(second) && second.index >= begins;
    const warm = Math.min(begins, (work.seconds[work.seconds.length - 1]?.index ?? -1) + 1);
    return [
      ...(warm > 0 && (planned !== null || work.seconds.some(outside)) ? [band('soft', 'warm-up')([0, warm])] : []),
      ...stretches(work.seconds, later).map(band('soft', 'not measured')),
      ...stretches(work.seconds, (second) => second.missing.length > 0).map(band('hatched', 'driver silent')),
    ];
  });
  return [...own, ...stages];
}

/** Drivers that do not take part now: those that are silent in the latest second, and those that were lost. */
export function away(buffer: Buffer, work: WorkSeconds | undefined): { silent: string[]; lost: string[] } {
  const lost = buffer.marks.filter((mark) => mark.kind === 'driver_lost').map((mark) => mark.driver);
  const silent = (work?.seconds[work.seconds.length - 1]?.missing ?? []).filter((name) => !lost.includes(name));
  return { silent, lost };
}
