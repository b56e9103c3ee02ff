import { expect, test } from 'vitest';
import { isLocal, joinCommand } from './join';

test('a driver elsewhere is told whom to trust, and brings a token', () => {
  expect(joinCommand('https://10.0.0.1:19088', '4f1c')).toBe(
    'tidemark driver --join https://10.0.0.1:19088 --trust sha256:4f1c --token-file drivers.token',
  );
  expect(joinCommand('http://10.0.0.1:19088', null)).toContain(' --token-file ');
});

test('a driver on the controller’s machine needs neither', () => {
  expect(joinCommand('http://127.0.0.1:19088', null)).toBe('tidemark driver --join http://127.0.0.1:19088');
  expect(['localhost', '127.0.0.1', '[::1]'].every(isLocal)).toBe(true);
  expect(['10.0.0.1', '127.0.0.1.example.org', 'localhost.example.org'].some(isLocal)).toBe(false);
});
