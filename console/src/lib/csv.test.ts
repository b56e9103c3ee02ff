import { expect, test } from 'vitest';
import { csv } from './csv';

test('cells are quoted where they must be, and formulas are made harmless', () => {
  expect(
    csv([
      ['name', 'n'],
      ['a "b", c', 1.5],
      ['=1+1', null],
    ]),
  ).toBe('name,n\r\n"a ""b"", c",1.5\r\n\'=1+1,\r\n');
});
