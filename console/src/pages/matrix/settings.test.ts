import { expect, test } from 'vitest';
import { setting, sizeOrder, sizeWords } from './settings';

test('settings are found by their names', () => {
  const block = 'pattern=randrw;reads=70.00 %;block_size=4 KiB;distribution=zipf(1.1);depth=32';
  expect(setting(block, 'pattern')).toBe('randrw');
  expect(setting(block, 'sizes', 'block_size')).toBe('4 KiB');
  expect(setting('containers=u(1,4);sizes=c(64)KB', 'sizes')).toBe('c(64)KB');
  expect([setting('', 'pattern'), setting('volumes', 'volumes'), setting('sizes=', 'sizes')]).toEqual([
    null,
    null,
    null,
  ]);
});

test('sizes are sorted by what they are, not by their letters', () => {
  const sizes = ['1 MiB', '4 KiB', 'c(64)KB', '512 B', 'u(8,16)KiB'];
  expect(sizes.sort((a, b) => sizeOrder(a) - sizeOrder(b))).toEqual([
    '512 B',
    '4 KiB',
    'u(8,16)KiB',
    'c(64)KB',
    '1 MiB',
  ]);
});

test('sizes are shown as people write them', () => {
  expect(
    ['c(64)KB', 'u(4,64)KiB', '64KiB', '4 KiB', 'h(1|64|10)KB', 'c(16384)B', 'c(2097152)B', 'c(1000)B'].map(sizeWords),
  ).toEqual(['64 KB', '4–64 KiB', '64 KiB', '4 KiB', 'h(1|64|10)KB', '16 KiB', '2 MiB', '1000 B']);
});
