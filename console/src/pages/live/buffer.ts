/** The latest seconds of a run that goes on, ready to be drawn: filled from `live`, then from events. */

import type { LiveBoard, LiveMark, LiveNode, LiveOperation, LiveRun, LiveSecond, LiveStage } from '../../api';

/** Seconds kept of each work: an hour. */
const keptSeconds = 3600;
/** Samples kept of each node. */
const keptSamples = 120;

/** The seconds of one work, by their index and without doubles. */
export interface WorkSeconds {
  stage: number;
  work: number;
  seconds: LiveSecond[];
  /** When it began, milliseconds since 1970: as far as its seconds tell. */
  begun: number;
  /** The last second, where it was told before it was over: it has less in it than others. `begun`: as far as it tells. */
  cut: { index: number; begun: number } | null;
}

export interface Buffer {
  stages: LiveStage[];
  works: WorkSeconds[];
  nodes: Map<string, LiveNode[]>;
  troubles: string[];
  marks: LiveMark[];
  /** Of an evaluation: where it stands. */
  board: LiveBoard | null;
  /** The number of the last event that is in it. */
  last: number;
  /** Counts up with every change, so that what is drawn knows. */
  turn: number;
}

export function fromLive(live: LiveRun): Buffer {
  const buffer: Buffer = {
    stages: [],
    works: [],
    nodes: new Map(),
    troubles: [],
    marks: [],
    board: null,
    last: 0,
    turn: 0,
  };
  refresh(buffer, live);
  return buffer;
}

/** Takes up what `live` has, after events may have been missed; seconds older than those stay. */
export function refresh(buffer: Buffer, live: LiveRun): void {
  putStages(buffer, live.stages);
  buffer.troubles = [...live.troubles];
  buffer.marks = [...live.marks];
  buffer.board = live.board;
  // Not the higher of both: a controller that was restarted counts from the beginning. To take an event twice is harmless.
  buffer.last = live.last_event;
  for (const second of live.seconds) putSecond(buffer, second);
  putNodes(buffer, live.nodes);
}

/**
 * Takes the stages as they are now. A stage that waits and did not before belongs to another run, the next one of an
 * evaluation: its seconds count from the beginning, and those of the last run go.
 */
export function putStages(buffer: Buffer, stages: LiveStage[]): void {
  const anew = stages.some(
    (stage, index) => stage.state === 'waiting' && (buffer.stages[index]?.state ?? 'waiting') !== 'waiting',
  );
  if (anew) {
    buffer.works = [];
    buffer.marks = [];
  }
  buffer.stages = stages;
  buffer.turn++;
}

/** Whether an event is news to what is there; those before `live` was asked are in it already. */
export function isNews(buffer: Buffer, event: number): boolean {
  // A stream without numbers is taken as it comes.
  if (!event) return true;
  if (event <= buffer.last) return false;
  buffer.last = event;
  return true;
}

/** A second that is told so much earlier than expected is not whole, milliseconds. */
const early = 150;

/** Puts a second at its place; the same second again replaces what was told before. */
export function putSecond(buffer: Buffer, second: LiveSecond): void {
  let of = buffer.works.find((one) => one.stage === second.stage && one.work === second.work);
  if (!of) {
    of = { stage: second.stage, work: second.work, seconds: [], begun: Infinity, cut: null };
    buffer.works.push(of);
  }
  // A second is told when it is over, or later: the earliest telling says best when the work began.
  const begun = second.unix_ms - (second.index + 1) * 1000;
  const latest = of.seconds.at(-1)?.index ?? second.index;
  // Only the last one of all is not whole: others before it were told late.
  if (of.cut && second.index > of.cut.index) {
    of.begun = Math.min(of.begun, of.cut.begun);
    of.cut = null;
  }
  const sooner = of.begun - begun;
  if (second.index > latest && sooner > early && sooner <= 1000) of.cut = { index: second.index, begun };
  else if (second.index !== of.cut?.index) of.begun = Math.min(of.begun, begun);
  const { seconds } = of;
  let at = seconds.length;
  while (at > 0 && seconds[at - 1]!.index >= second.index) at--;
  seconds.splice(at, seconds[at]?.index === second.index ? 1 : 0, second);
  if (seconds.length > keptSeconds) seconds.splice(0, seconds.length - keptSeconds);
  buffer.turn++;
}

export function putNodes(buffer: Buffer, nodes: readonly LiveNode[]): void {
  for (const node of nodes) {
    const samples = buffer.nodes.get(node.name) ?? [];
    if (samples[samples.length - 1]?.unix_ms === node.unix_ms) continue;
    samples.push(node);
    if (samples.length > keptSamples) samples.shift();
    buffer.nodes.set(node.name, samples);
  }
  buffer.turn++;
}

/** The work that a viewer wants to see first: of the stage that runs, the one with the most done; else the longest. */
export function liveliest(buffer: Buffer): WorkSeconds | undefined {
  const running = buffer.stages.findIndex((stage) => stage.state === 'running');
  const now = buffer.works.filter((one) => one.stage === running);
  const done = (one: WorkSeconds) => sum(one.seconds[one.seconds.length - 1]?.operations ?? [], 'ok');
  return now.length > 0
    ? now.sort((a, b) => done(b) - done(a))[0]
    : buffer.works.slice().sort((a, b) => b.seconds.length - a.seconds.length)[0];
}

export const sum = (operations: readonly LiveOperation[], field: 'ok' | 'failed' | 'bytes') =>
  operations.reduce((sum, operation) => sum + operation[field], 0);

/** A line for each of the values, over seconds of the run; a second that was not told is a gap. */
export type Lines = [x: number[], ...y: (number | null)[][]];

/** When the run began, milliseconds since 1970. */
export function origin(buffer: Buffer): number {
  const begun = buffer.stages.map((stage) => stage.started_unix_ms ?? Infinity);
  const first = Math.min(...begun, ...buffer.works.map((work) => work.begun));
  return Number.isFinite(first) ? first : Date.now();
}

/** The second of the run in which a work's first second lies. */
export const offset = (buffer: Buffer, work: WorkSeconds) =>
  Math.max(0, Math.round((work.begun - origin(buffer)) / 1000));

/** The first and the last second of the run that any of the works told. */
export function reach(buffer: Buffer, works: readonly WorkSeconds[]): [from: number, to: number] {
  const ends = works.flatMap((work) => {
    const [first, last] = [work.seconds[0], work.seconds[work.seconds.length - 1]];
    const at = offset(buffer, work);
    return first && last ? [at + first.index, at + last.index] : [];
  });
  return ends.length > 0 ? [Math.min(...ends), Math.max(...ends)] : [0, 0];
}

/** A second of a work, as it is told with others of the same second of the run. */
export interface Told {
  work: WorkSeconds;
  second: LiveSecond;
}

/** Lines from one second of the run to another, of what all the works told in each of them. */
export function lines(
  buffer: Buffer,
  works: readonly WorkSeconds[],
  [from, to]: readonly [number, number],
  values: readonly ((told: readonly Told[]) => number | null)[],
): Lines {
  const x = Array.from({ length: Math.max(1, to - from + 1) }, (_, at) => from + at);
  const told: Told[][] = x.map(() => []);
  for (const work of works) {
    const begun = offset(buffer, work);
    const last = work.seconds.at(-1);
    for (const second of work.seconds) {
      // Less than a second at the end would look like a collapse.
      if (second === last && second.index === work.cut?.index) continue;
      told[begun + second.index - from]?.push({ work, second });
    }
  }
  return [x, ...values.map((value) => told.map((all) => (all.length > 0 ? value(all) : null)))];
}

/** What all works that tell seconds together did at last; latencies cannot be added, so there are none. */
export interface Totals {
  ok: number;
  failed: number;
  bytes: number;
  inFlight: number;
  backlog: number;
  /** Failures in all seconds that are kept. */
  failedInAll: number;
  /** How many seconds these are. */
  kept: number;
}

export function totals(buffer: Buffer, stage: number): Totals {
  const all = { ok: 0, failed: 0, bytes: 0, inFlight: 0, backlog: 0, failedInAll: 0, kept: 0 };
  for (const { seconds } of buffer.works.filter((one) => one.stage === stage)) {
    const last = seconds[seconds.length - 1];
    if (!last) continue;
    all.ok += sum(last.operations, 'ok');
    all.failed += sum(last.operations, 'failed');
    all.bytes += sum(last.operations, 'bytes');
    all.inFlight += last.in_flight;
    all.backlog += last.backlog;
    all.kept = Math.max(all.kept, seconds.length);
    all.failedInAll += seconds.reduce((failed, second) => failed + sum(second.operations, 'failed'), 0);
  }
  return all;
}
