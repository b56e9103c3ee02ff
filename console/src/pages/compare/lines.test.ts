import { expect, test } from 'vitest';
import type { ComparedOperation, ComparedSide } from '../../api';
import { changeOf, curves, overTime, percentileAt, undrawn } from './lines';

const side = (runs: number[], us: number): ComparedSide => ({
  config: '',
  workers: 8,
  ok: 1,
  failed: 0,
  throughput: 1,
  bandwidth: 0,
  mean_us: us,
  percentiles_us: [
    [0.1, us / 2],
    [0.5, us],
    [0.99, 3 * us],
    [1, 9 * us],
  ],
  runs: runs.map((run) => ({ run, seconds: [run, run + 1].map((at) => ({ at, throughput: 10 * run, p99_us: us })) })),
});
const both: ComparedOperation = { load: '', operation: 'read', a: side([1, 2], 100), b: side([3], 200) };

test('every run of both groups is a line in the colour of its group', () => {
  const { lines, data } = overTime(both, (second) => second.throughput);
  expect(lines.map(({ name, colour }) => [name, colour])).toEqual([
    ['A: run 1', '--c0'],
    ['A: run 2', '--c0'],
    ['B: run 3', '--c1'],
  ]);
  expect(lines[0]!.dash).not.toEqual(lines[1]!.dash);
  expect(data).toEqual([
    [1, 2, 3, 4],
    [10, 10, null, null],
    [null, 20, 20, null],
    [null, null, 30, 30],
  ]);
  expect(undrawn({ ...both, b: side([3, 4, 5, 6, 7, 8, 9, 10], 1) })).toBe(2);
});

test('curves give each nine the same room, and have the maximum at their end', () => {
  const { lines, data } = curves(both);
  expect(lines.map(({ name }) => name)).toEqual(['A: 2 runs', 'B']);
  expect(data[0]!.map((position) => percentileAt(position!))).toEqual(['p50', 'p99', 'max']);
  expect(data[0]![1]! - data[0]![0]!).toBeGreaterThan(1);
  expect(data.slice(1)).toEqual([
    [100, 300, 900],
    [200, 600, 1800],
  ]);
  expect(curves({ ...both, a: null }).lines).toHaveLength(1);
});

test('percentiles have the names that people know', () => {
  expect([1, 2, 3, 4].map(percentileAt)).toEqual(['p90', 'p99', 'p99.9', 'p99.99']);
});

test('changes are in percent, with a sign', () => {
  expect([changeOf(100, 104.2), changeOf(100, 50), changeOf(100, 100.01), changeOf(0, 1), changeOf(null, 1)]).toEqual([
    '+4.2 %',
    '−50 %',
    '±0 %',
    '–',
    '–',
  ]);
});
