import { expect, test } from 'vitest';
import type { LiveOperation, LiveRun, LiveSecond, LiveStage, RunState } from '../../api';
import { fromLive, isNews, lines, liveliest, putNodes, putSecond, putStages, refresh, totals } from './buffer';

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
  unix_ms: 0,
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
  expect(lines(buffer.works[0]!, 600, [rate])).toEqual([
    [4, 5, 6],
    [100, null, 100],
  ]);
  expect(lines(buffer.works[0]!, 2, [rate])).toEqual([
    [5, 6],
    [null, 100],
  ]);
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
