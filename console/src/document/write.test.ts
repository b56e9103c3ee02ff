import { expect, test } from 'vitest';
import declared from '../../mock/targets.json';
import type { TargetForm } from '../api';
import { firstLoad, objections, type Load } from './load';
import * as document from './write';

/** What the engines declare: a test of the controller keeps the file up to date. */
const targets: TargetForm[] = declared;
const form = (name: string) => targets.find((target) => target.form.name === name)!;
const load = (changes: Partial<Load>): Load => ({ ...firstLoad, ...changes });
/** A load on a target with some settings changed. */
const on = (target: string, changes: Record<string, string>, more: Partial<Load> = {}) =>
  load({ target, settings: { [target]: changes }, ...more });
const write = (load: Load) => document.write(load, form(load.target));
const said = (load: Load) => objections(load, form(load.target));

test('a first document reads what was prepared and writes what was not', () => {
  expect(write(firstLoad)).toBe(`name: my-workload
target: embedded
stages:
  - init: {containers: 1-4}
  - prepare: {workers: 8, containers: 1-4, objects: 1-1000, sizes: 64KiB}
  - name: main
    load:
      workers: 16
      warm_up: 5s
      for: 60s
      containers: 1-4
      operations:
        - get: {weight: 70, objects: 1-1000}
        - put: {weight: 30, objects: 1001-2000, sizes: 64KiB}
  - cleanup: {workers: 8, containers: 1-4, objects: 1-2000}
  - dispose: {containers: 1-4}
`);
});

test('keys stay references to the environment', () => {
  const text = write(load({ target: 's3' }));
  expect(text).toContain('target:\n  kind: s3\n  endpoint: "http://10.0.0.1:8000"\n');
  expect(text).toContain('  access_key: ${TIDEMARK_SECRET_ACCESS_KEY}\n  secret_key: ${TIDEMARK_SECRET_KEY}\n');
  expect(text).not.toContain('session_token');
  expect(said(on('s3', { secret_key: 'hunter2' }))).toEqual({
    secret_key: expect.stringContaining('never the key itself'),
  });
});

test('several endpoints are a list', () => {
  const text = write(on('s3', { endpoint: 'http://a:1, http://b:1' }));
  expect(text).toContain('endpoint: ["http://a:1", "http://b:1"]');
});

test('a mapping within a target is one of its kinds', () => {
  const first = write(load({ target: 'swift' }));
  expect(first).toContain('  auth:\n    kind: tempauth\n    url: "http://10.0.0.1:8080/auth/v1.0"\n');
  const keystone = write(on('swift', { 'auth.kind': 'keystone-v3', 'auth.user': 'demo', timeout: '5s' }));
  expect(keystone).toContain('    kind: keystone-v3\n    url: "http://10.0.0.1:5000/v3"\n    user: demo\n');
  expect(keystone).toContain('  timeout: 5s\n');
  expect(said(on('swift', { 'auth.user': ' ' }))).toEqual({ 'auth.user': 'Enter a value.' });
});

test('every kind of target is written with all that it requires', () => {
  for (const { form } of targets) {
    const one = load({ target: form.name });
    expect(said(one), form.name).toEqual({});
    expect(write(one)).toMatch(new RegExp(`target:( ${form.name}|\\n  kind: ${form.name})\\n`));
  }
});

test('volumes have patterns instead of operations', () => {
  const text = write(on('file', { size: '1GiB' }, { read: 70, write: 30, sizeFrom: 4, random: true, depth: 16 }));
  expect(text).toBe(`name: my-workload
target:
  kind: file
  path: /mnt/data/tidemark
  size: 1GiB
stages:
  - prepare: {}
  - name: main
    load:
      pattern: randrw
      reads: 70%
      block_size: 4KiB
      depth: 16
      warm_up: 5s
      for: 60s
  - cleanup: {}
`);
  expect(write(on('file', {}, { read: 1, write: 0, random: false }))).toContain('pattern: read\n');
});

test('deletes bring a pool that knows what exists', () => {
  const text = write(load({ delete: 10 }));
  expect(text).toContain('      objects: 1-2000\n      pool: {existing: 1-1000}\n');
  expect(text).toContain('- get: {weight: 70}\n');
});

test('a rate, a spread of sizes and names that YAML would misread', () => {
  const text = write(load({ pace: 'rate', sizeFrom: 4, sizeTo: 64, name: 'on: #1' }));
  expect(text).toContain('      rate: 500/s\n');
  expect(text).toContain('sizes: "u(4,64)KiB"');
  expect(text).toContain('name: "on: #1"\n');
});

test('what cannot be meant is objected to', () => {
  expect(said(firstLoad)).toEqual({});
  const wrong = said(load({ name: ' ', workers: 0, read: 0, write: 0, sizeFrom: 8, sizeTo: 4 }));
  expect(Object.keys(wrong).sort()).toEqual(['name', 'read', 'sizeTo', 'workers']);
});
