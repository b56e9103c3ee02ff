import { expect, test } from 'vitest';
import { bandwidth, bytes, clock, count, duration, latency, memory, percent, plural, rate, short } from './format';

test('bytes count by 1000, memory by 1024', () => {
  expect(bytes(64_000)).toBe('64.0 kB');
  expect(bytes(65_536)).toBe('65.5 kB');
  expect(memory(65_536)).toBe('64.0 KiB');
  expect(bytes(512)).toBe('512 B');
  expect(bandwidth(444_000_000)).toBe('444 MB/s');
});

test('no unit is written a thousand times', () => {
  expect(bytes(999_600)).toBe('1.00 MB');
  expect(latency(999.6)).toBe('1.00 ms');
  expect(latency(999_600)).toBe('1.00 s');
});

test('latencies choose their unit', () => {
  expect([latency(710), latency(1380), latency(12_000_000)]).toEqual(['710 µs', '1.38 ms', '12.0 s']);
});

test('rates and counts keep their separators', () => {
  expect(rate(9713.4)).toBe('9\u202f713 op/s');
  expect(count(1_234_567)).toBe('1\u202f234\u202f567');
  expect([short(12_345), short(8), short(0.5)]).toEqual(['12.3k', '8', '0.50']);
});

test('almost all is not all', () => {
  expect(percent(1)).toBe('100 %');
  expect(percent(0.99999)).toBe('>99.9 %');
  expect(percent(0.00001)).toBe('<0.01 %');
  expect(percent(0)).toBe('0 %');
  expect(percent(0.58)).toBe('58 %');
});

test('lengths of time that people wait for', () => {
  expect([1500, 45_000, 125_000, 12_000_000].map(duration)).toEqual(['1.5 s', '45 s', '2 m 05 s', '3 h 20 m']);
  expect([5, 125, 3725].map(clock)).toEqual(['0:05', '2:05', '1:02:05']);
});

test('one is not many', () => {
  expect([plural(1, 'run'), plural(2, 'run')]).toEqual(['1 run', '2 runs']);
});
