import { expect, test } from 'vitest';
import type { MatrixRow } from '../../api';
import { looks, series } from './series';

const row = (run: number, workers: number, operation: string, throughput: number, more: Partial<MatrixRow> = {}) =>
  ({
    name: 'web',
    stage: 's3-main',
    work: 'main',
    config: 'sizes=4KiB',
    evaluation: null,
    arm: '',
    level: '',
    depth: 1,
    run,
    workers,
    operation,
    throughput,
    ...more,
  }) as MatrixRow;

const rows = [
  row(3, 8, 'read', 30),
  row(1, 8, 'read', 10),
  row(2, 16, 'read', 20),
  row(4, 8, 'read', 50),
  row(1, 8, 'write', 5),
];
const throughput = (row: MatrixRow) => row.throughput;

test('over runs, in the order of their numbers', () => {
  const { series: drawn, data } = series(rows, 'runs', throughput);
  expect(drawn.map(({ name }) => name)).toEqual(['web read', 'web write']);
  expect(data).toEqual([
    [1, 2, 3, 4],
    [10, 20, 30, 50],
    [5, null, null, null],
  ]);
});

test('over workers it is the middle run that counts, not a mean', () => {
  const { data } = series(rows, 'workers', throughput);
  expect(data).toEqual([
    [8, 16],
    [30, 20],
    [5, null],
  ]);
});

test('workloads that have nothing to do with each other have no median in common', () => {
  const other = [
    row(5, 8, 'read', 9000, { name: 'archive' }),
    row(6, 8, 'read', 7000, { config: 'sizes=8MiB' }),
    row(7, 8, 'read', 400, { stage: 's4-again' }),
  ];
  const { series: drawn, data } = series([...rows, ...other], 'workers', throughput);
  const value = (name: string) => data[1 + drawn.findIndex((one) => one.name === name)]?.[0];
  expect(value('archive read')).toBe(9000);
  expect(drawn.map(({ name }) => name)).toContain('web read (s4-again)');
  expect(new Set(drawn.map(({ name }) => name)).size).toBe(drawn.length);
  expect(data.slice(1).map((line) => line[0])).toEqual([30, 5, 9000, 7000, 400]);
});

test('arms and levels of an evaluation are apart, their repeats together', () => {
  const cell = (run: number, arm: string, workers: number, throughput: number) =>
    row(run, workers, 'read', throughput, { evaluation: 1, arm, level: `workers ${workers}` });
  const cells = [cell(1, 'old', 8, 10), cell(2, 'old', 8, 12), cell(3, 'new', 8, 90), cell(4, 'new', 16, 70)];
  const { series: drawn, data } = series(cells, 'workers', throughput);
  expect(drawn.map(({ name }) => name)).toEqual([
    'web read, old, workers 8',
    'web read, new, workers 8',
    'web read, new, workers 16',
  ]);
  expect(data.slice(1)).toEqual([
    [12, null],
    [90, null],
    [null, 70],
  ]);
});

test('a series keeps its colour, whatever is filtered, and no two that are drawn have the same', () => {
  const look = looks();
  const colours = (keys: string[]) => look(keys).map(({ colour }) => colour);
  const [first, second] = [
    ['a', 'b', 'c', 'd', 'e', 'f'],
    ['b', 'g', 'h'],
  ];
  expect(colours(first)).toEqual([0, 1, 2, 3, 4, 5]);
  const [b, g, h] = colours(second);
  expect(b).toBe(1);
  expect(new Set([b, g, h]).size).toBe(3);
  expect(colours(first)).toEqual([0, 1, 2, 3, 4, 5]);
  // Where colours meet all the same, strokes tell them apart.
  const both = look(['a', 'g']);
  expect(both[0]).not.toEqual(both[1]);
});

test('more series than can be told apart are counted', () => {
  const many = Array.from({ length: 9 }, (_, index) => row(index, 8, `op${index}`, 1));
  const { series: drawn, left } = series(many, 'runs', throughput);
  expect([drawn.length, left]).toEqual([6, 3]);
});
