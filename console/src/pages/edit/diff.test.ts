import { expect, test } from 'vitest';
import { diff, hunks } from './diff';

const told = (before: string, after: string) => diff(before, after).map(({ sign, text }) => sign + text);

test('a changed line is taken out and put in', () => {
  expect(told('a\nb\nc', 'a\nx\nc')).toEqual([' a', '-b', '+x', ' c']);
  expect(told('a\nb', 'a\nb')).toEqual([' a', ' b']);
  expect(told('', 'a')).toEqual(['-', '+a']);
});

test('what both have stays, wherever lines came in between', () => {
  expect(told('1\n2\n3\n4', '1\nx\n2\n4\ny')).toEqual([' 1', '+x', ' 2', '-3', ' 4', '+y']);
});

test('either text can be made of the lines', () => {
  const [before, after] = ['q\nb\nb\na\nc\nz', 'b\na\nb\nc\nc'];
  const lines = diff(before, after);
  const without = (sign: string) =>
    lines
      .filter((line) => line.sign !== sign)
      .map((line) => line.text)
      .join('\n');
  expect([without('+'), without('-')]).toEqual([before, after]);
});

test('only what changed is shown, with some around it', () => {
  const many = Array.from({ length: 20 }, (_, index) => String(index));
  const lines = hunks(diff(many.join('\n'), many.map((text) => (text === '10' ? 'x' : text)).join('\n')));
  expect(lines.map((line) => line?.text ?? '…')).toEqual(['…', '8', '9', '10', 'x', '11', '12', '…']);
});
