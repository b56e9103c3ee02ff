import { expect, test } from 'vitest';
import type { LiveOperation, LiveRun, LiveSecond, LiveStage, RunState } from '../../api';
import {
  fromLive,
  isNews,
  lines,
  liveliest,
  origin,
  putNodes,
  putSecond,
  putStages,
  reach,
  refresh,
  type Told,
  totals,
} from './buffer';
import { away, bands, marks } from './marks';

/** When the works of the tests begin. */
const begun = 1_700_000_000_000;
const operation = (ok: number, failed = 0): LiveOperation => ({
  ok,
  failed,
  bytes: ok * 10,
  mean_us: 1,
  p50_us: 1,
  p95_us: 2,
  p99_us: 3,
  max_us: 4,
});
const second = (index: number, ok = 100, stage = 2, work = 0): LiveSecond => ({
  stage,
  work,
  index,
  unix_ms: begun + 1000 * (index + 1),
  operations: [operation(ok, 1)],
  unmeasured: 0,
  in_flight: 5,
  missing: [],
  backlog: 2,
  busy: 0,
  drivers: [],
});
const stage = (state: RunState): LiveStage => ({
  id: 's1',
  name: '',
  state,
  reason: '',
  started_unix_ms: null,
  ended_unix_ms: null,
  expected_ms: null,
  expected_operations: null,
  operations: 0,
  works: [],
});
const stages = (...states: RunState[]) => states.map(stage);
const live = (seconds: LiveSecond[]): LiveRun => ({
  submission: 1,
  run: null,
  stages: stages('completed', 'completed', 'running'),
  seconds,
  nodes: [],
  troubles: [],
  marks: [],
  board: null,
  last_event: 50,
});
const rate = (second: LiveSecond) => second.operations[0]!.ok;

test('seconds come to their places, whatever their order, and once', () => {
  const buffer = fromLive(live([second(0), second(2), second(1)]));
  putSecond(buffer, second(2, 70));
  putSecond(buffer, second(3));
  expect(buffer.works[0]!.seconds.map(({ index }) => index)).toEqual([0, 1, 2, 3]);
  expect(rate(buffer.works[0]!.seconds[2]!)).toBe(70);
});

test('a second that was not told is a gap, not a zero', () => {
  const buffer = fromLive(live([second(4), second(6)]));
  const ok = (told: readonly Told[]) => rate(told[0]!.second);
  expect(reach(buffer, buffer.works)).toEqual([4, 6]);
  expect(lines(buffer, buffer.works, [4, 6], [ok])).toEqual([
    [4, 5, 6],
    [100, null, 100],
  ]);
});

test('what is left of a second at the end is not drawn as if it were whole', () => {
  const ok = (told: readonly Told[]) => rate(told[0]!.second);
  const drawn = (...seconds: LiveSecond[]) => {
    const buffer = fromLive(live(seconds));
    return [origin(buffer), lines(buffer, buffer.works, reach(buffer, buffer.works), [ok])[1]];
  };
  const whole = [second(0), second(1)];
  // Told 700 ms before it would have been over.
  const rest = { ...second(2, 9), unix_ms: second(2).unix_ms - 700 };
  expect(drawn(...whole, rest)).toEqual([begun, [100, 100, null]]);
  expect(drawn(...whole, { ...rest, unix_ms: second(2).unix_ms - 20 })[1]).toEqual([100, 100, 9]);
  // Where another second follows, those before were told late.
  expect(drawn(...whole, rest, { ...second(3), unix_ms: second(3).unix_ms - 700 })).toEqual([
    begun - 700,
    [100, 100, 9, 100],
  ]);
});

test('works stand where they were in the run, also when seconds were told late', () => {
  const later = (index: number) => ({ ...second(index, 7, 3), unix_ms: begun + 60_000 + 1000 * (index + 1) });
  const buffer = fromLive(live([second(0), second(1), { ...later(0), unix_ms: begun + 90_000 }, later(1)]));
  expect(origin(buffer)).toBe(begun);
  const [x, ok] = lines(buffer, buffer.works, reach(buffer, buffer.works), [
    (told) => told.reduce((sum, { second }) => sum + rate(second), 0),
  ]);
  expect(x).toHaveLength(62);
  expect([ok![0], ok![1], ok![2], ok![60], ok![61]]).toEqual([100, 100, null, 7, 7]);
});

test('warm-up, silent drivers and what happened are pointed out at their seconds', () => {
  const warm = { ...second(0, 0), operations: [operation(0)], unmeasured: 50 };
  const silent = { ...second(2), missing: ['d2'] };
  const buffer = fromLive({
    ...live([warm, second(1), silent, second(3)]),
    marks: [{ unix_ms: begun + 2500, kind: 'driver_silent', driver: 'd2', text: 'd2 is silent' }],
  });
  expect(bands(buffer, buffer.works)).toMatchObject([
    { from: -0.5, to: 0.5, look: 'soft', text: 'warm-up' },
    { from: 1.5, to: 2.5, look: 'hatched' },
  ]);
  expect(marks(buffer)).toMatchObject([{ at: 2.5, tone: 'warn', text: 'd2 is silent' }]);
});

test('drivers that are silent or lost do not take part', () => {
  const buffer = fromLive({
    ...live([{ ...second(0), missing: ['d2', 'd3'] }]),
    marks: [{ unix_ms: begun, kind: 'driver_lost', driver: 'd3', text: 'd3 is lost' }],
  });
  expect(away(buffer, buffer.works[0])).toEqual({ silent: ['d2'], lost: ['d3'] });
});

test('events that live has already are no news', () => {
  const buffer = fromLive(live([]));
  expect([49, 50, 51, 51].map((event) => isNews(buffer, event))).toEqual([false, false, true, false]);
  expect(isNews(buffer, 0)).toBe(true);
});

test('after a reconnect the gap is filled and older seconds stay', () => {
  const buffer = fromLive(live([second(0), second(1)]));
  refresh(buffer, { ...live([second(1), second(2), second(3)]), last_event: 7 });
  expect(buffer.works[0]!.seconds.map(({ index }) => index)).toEqual([0, 1, 2, 3]);
  expect(isNews(buffer, 8)).toBe(true);
});

test('the next run of an evaluation begins with nothing', () => {
  const buffer = fromLive(live([second(0), second(1)]));
  putStages(buffer, stages('completed', 'completed', 'completed'));
  expect(buffer.works).toHaveLength(1);
  putStages(buffer, stages('running', 'waiting', 'waiting'));
  expect(buffer.works).toHaveLength(0);
});

test('no more than an hour is kept', () => {
  const buffer = fromLive(live([]));
  for (let index = 0; index < 4000; index++) putSecond(buffer, second(index));
  expect(buffer.works[0]!.seconds).toHaveLength(3600);
  expect(buffer.works[0]!.seconds[0]!.index).toBe(400);
});

test('the busiest work of the running stage is shown first, and the works of a stage add up', () => {
  const buffer = fromLive(live([second(0, 900, 1), second(0, 10, 2, 0), second(0, 500, 2, 1)]));
  expect(liveliest(buffer)).toMatchObject({ stage: 2, work: 1 });
  expect(totals(buffer, 2)).toMatchObject({ ok: 510, failed: 2, bytes: 5100, inFlight: 10, backlog: 4 });
  expect(liveliest(fromLive(live([])))).toBeUndefined();
});

test('samples of nodes are kept by node', () => {
  const buffer = fromLive(live([]));
  const node = { generates: true, cpu_busy: 0.5, memory_used_bytes: 1, received_per_s: 1, sent_per_s: 1 };
  for (let at = 0; at < 200; at++)
    putNodes(
      buffer,
      ['a', 'b'].map((name) => ({ ...node, name, unix_ms: at })),
    );
  expect([...buffer.nodes.keys()]).toEqual(['a', 'b']);
  expect(buffer.nodes.get('a')).toHaveLength(120);
});
