import { expect, test } from 'vitest';
import { matches, move, next, sorted } from './order';

test('numbers sort as numbers, names as people read them, and nothing is last either way', () => {
  expect(sorted([10, 9, null, 100], (value) => value, false)).toEqual([9, 10, 100, null]);
  expect(sorted([10, 9, null, 100], (value) => value, true)).toEqual([100, 10, 9, null]);
  expect(sorted(['driver-10', 'driver-9'], (name) => name, false)).toEqual(['driver-9', 'driver-10']);
});

test('equal rows stay in their order', () => {
  const rows = [1, 2, 3, 4].map((id) => ({ id, same: 0 }));
  expect(sorted(rows, (row) => row.same, true).map((row) => row.id)).toEqual([1, 2, 3, 4]);
});

test('a second click turns the order round, numbers begin with the largest', () => {
  const first = next({ column: 'name', descending: false }, 'throughput', true);
  expect(first).toEqual({ column: 'throughput', descending: true });
  expect(next(first, 'throughput', true).descending).toBe(false);
});

test('all words of a search must occur', () => {
  expect(matches('ceph read', 'read-64k on Ceph')).toBe(true);
  expect(matches('ceph write', 'read-64k on Ceph')).toBe(false);
  expect(matches('', 'anything')).toBe(true);
});

test('the queue moves before somebody, or behind the last', () => {
  const queue = [5, 6, 7].map((id) => ({ id, priority: 0 }));
  expect(move(queue, 6, 0)).toEqual({ before: 5 });
  expect(move(queue, 5, 1)).toEqual({ before: 7 });
  expect(move(queue, 5, 2)).toEqual({ priority: -1 });
  expect(move(queue, 5, -1)).toBeNull();
  expect(move(queue, 9, 0)).toBeNull();
});
