import { expect, test } from 'vitest';
import { parseRuns } from './parse';

test('single numbers, ranges, and each run once', () => {
  expect(parseRuns('12, 14-16 15')).toEqual([12, 14, 15, 16]);
  expect(parseRuns('')).toEqual([]);
});

test('what cannot be meant is not guessed', () => {
  expect(['a', '3-1', '0', '1-100000', '1,,x'].map(parseRuns)).toEqual([null, null, null, null, null]);
});
