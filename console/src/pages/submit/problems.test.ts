import { expect, test } from 'vitest';
import type { Problem } from '../../api';
import { sorted } from './problems';

const problem = (warning: boolean, line: number, message: string) =>
  ({ warning, line, message, column: 1, length: 1, help: '' }) as Problem;

test('errors come first, and remarks without a place are folded, each once', () => {
  const all = [
    problem(true, 0, 'the store keeps everything in memory'),
    problem(true, 4, 'this is never read'),
    problem(true, 0, 'the store keeps everything in memory'),
    problem(false, 7, 'not a key'),
    problem(false, 0, 'the document has no name'),
  ];
  const { shown, folded } = sorted(all);
  expect(shown.map(({ message }) => message)).toEqual(['not a key', 'the document has no name', 'this is never read']);
  expect(folded.map(({ message }) => message)).toEqual(['the store keeps everything in memory']);
});
