import { expect, test } from 'vitest';
import { parseMargin, parseRuns } from './parse';

test('single numbers, ranges, and each run once', () => {
  expect(parseRuns('12, 14-16 15')).toEqual([12, 14, 15, 16]);
  expect(parseRuns('')).toEqual([]);
});

test('what cannot be meant is not guessed', () => {
  expect(['a', '3-1', '0', '1-100000', '1,,x'].map(parseRuns)).toEqual([null, null, null, null, null]);
});

test('a margin is a share', () => {
  expect(['5%', '5 %', '0.05', '', ' ', '2.5%'].map(parseMargin)).toEqual(['5%', '5%', '5%', '', '', '2.5%']);
  expect(['5', '0', '100%', 'x', '-1%', '5%5'].map(parseMargin)).toEqual([null, null, null, null, null, null]);
});
