import { expect, test } from 'vitest';
import type { MatrixRow } from '../../api';
import { series } from './series';

const row = (run: number, workers: number, operation: string, throughput: number) =>
  ({ run, workers, operation, throughput }) as MatrixRow;

const rows = [
  row(3, 8, 'read', 30),
  row(1, 8, 'read', 10),
  row(2, 16, 'read', 20),
  row(4, 8, 'read', 50),
  row(1, 8, 'write', 5),
];

test('over runs, in the order of their numbers', () => {
  const { operations, data } = series(rows, 'runs', (row) => row.throughput);
  expect(operations).toEqual(['read', 'write']);
  expect(data).toEqual([
    [1, 2, 3, 4],
    [10, 20, 30, 50],
    [5, null, null, null],
  ]);
});

test('over workers it is the middle run that counts, not a mean', () => {
  const { data } = series(rows, 'workers', (row) => row.throughput);
  expect(data).toEqual([
    [8, 16],
    [30, 20],
    [5, null],
  ]);
});
