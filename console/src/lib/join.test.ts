import { expect, test } from 'vitest';
import { freeName, isLocal, join } from './join';

test('a driver elsewhere is told whom to trust, and brings the token of its name', () => {
  expect(join('https://10.0.0.1:19088', '4f1c', 'driver2')).toEqual({
    command:
      'tidemark driver --join https://10.0.0.1:19088 --trust sha256:4f1c --token-file driver2.token --name driver2',
    token: 'tidemark token add driver2 --role driver > driver2.token',
  });
  expect(join('http://10.0.0.1:19088', null, 'driver1').command).toContain(' --token-file ');
});

test('a driver on the controller’s machine needs neither', () => {
  expect(join('http://127.0.0.1:19088', null, 'driver1')).toEqual({
    command: 'tidemark driver --join http://127.0.0.1:19088 --name driver1',
    token: null,
  });
  expect(['localhost', '127.0.0.1', '[::1]'].every(isLocal)).toBe(true);
  expect(['10.0.0.1', '127.0.0.1.example.org', 'localhost.example.org'].some(isLocal)).toBe(false);
});

test('no two drivers have the same name', () => {
  expect([freeName([]), freeName(['driver1', 'local', 'driver3'])]).toEqual(['driver1', 'driver2']);
});
