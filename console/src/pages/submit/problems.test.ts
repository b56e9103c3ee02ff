import { expect, test } from 'vitest';
import type { Problem } from '../../api';
import { sorted } from './problems';

const problem = (warning: boolean, line: number, message: string, general = false) =>
  ({ warning, general, line, message, column: 1, length: 1, help: '' }) as Problem;

test('errors come first, and what holds for every such document is folded, each once', () => {
  const all = [
    problem(true, 0, 'throughput is counted otherwise', true),
    problem(true, 4, 'this is never read'),
    problem(true, 0, 'throughput is counted otherwise', true),
    problem(false, 7, 'not a key'),
    problem(true, 0, 'the content is verified'),
  ];
  const { shown, folded } = sorted(all);
  expect(shown.map(({ message }) => message)).toEqual(['not a key', 'this is never read', 'the content is verified']);
  expect(folded.map(({ message }) => message)).toEqual(['throughput is counted otherwise']);
});
