import { expect, test } from 'vitest';
import { fromAddress, toAddress, toHistory } from './query';

const of = (search: string) => fromAddress(new URLSearchParams(search));

test('an address says what is shown, and what is as usual is left out', () => {
  expect(toAddress(of(''))).toBe('/runs');
  const address = toAddress({ ...of(''), text: 'web 4k', tag: 'nightly', sort: 'p99', ascending: true, page: 3 });
  expect(of(address.split('?')[1]!)).toEqual({
    ...of(''),
    text: 'web 4k',
    tag: 'nightly',
    sort: 'p99',
    ascending: true,
    page: 3,
  });
});

test('what nobody understands is as usual', () => {
  expect(of('valid=maybe&sort=colour&page=-4&evaluation=x')).toEqual(of(''));
});

test('a page begins after those before it', () => {
  expect(toHistory({ ...of(''), page: 3, valid: 'false' })).toMatchObject({ offset: 200, limit: 100, valid: false });
  expect(toHistory(of(''))).not.toHaveProperty('valid');
});
