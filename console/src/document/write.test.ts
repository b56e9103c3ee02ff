import { expect, test } from 'vitest';
import declared from '../../mock/targets.json';
import type { TargetForm } from '../api';
import { firstLoad, firstStage, objections, runsOf, sizeText, type Load, type Stage } from './load';
import { hidden } from './target';
import * as document from './write';

/** What the engines declare: a test of the controller keeps the file up to date. */
const targets: TargetForm[] = declared;
const form = (name: string) => targets.find((target) => target.form.name === name)!;
const load = (changes: Partial<Load>): Load => ({ ...firstLoad, ...changes });
/** A load with one stage, some of it changed. */
const staged = (changes: Partial<Stage>, more: Partial<Load> = {}) =>
  load({ stages: [{ ...firstStage, ...changes }], ...more });
/** A load on a target with some settings changed. */
const on = (target: string, changes: Record<string, string>, more: Partial<Load> = {}) =>
  load({ target, settings: { [target]: changes }, ...more });
/** A load on volumes. */
const volume = (target: string, values: Record<string, string>, settings: Record<string, string> = {}) =>
  on(target, settings, { volumeStages: [{ name: 'main', values }] });
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

test('a first document on S3 names no variable that the controller may not have', () => {
  const text = write(load({ target: 's3' }));
  expect(text).toContain('target:\n  kind: s3\n  endpoint: "http://10.0.0.1:8000"\nstages:');
  expect(said(load({ target: 's3' }))).toEqual({});
});

test('keys are entered, or references to the environment of the controller', () => {
  const keys = { access_key: '4711', secret_key: 'hun: #ter2' };
  expect(write(on('s3', keys))).toContain('  access_key: "4711"\n  secret_key: "hun: #ter2"\n');
  expect(said(on('s3', keys))).toEqual({});
  const named = write(on('s3', { access_key: '${TIDEMARK_SECRET_A}', secret_key: '${TIDEMARK_SECRET_B}' }));
  expect(named).toContain('  access_key: ${TIDEMARK_SECRET_A}\n  secret_key: ${TIDEMARK_SECRET_B}\n');
});

test('what is shown has dots instead of keys', () => {
  const entered = on('s3', { access_key: '${TIDEMARK_SECRET_A}', secret_key: 'hunter2' });
  const shown = document.write(entered, form('s3'), true);
  expect(shown).toBe(write(entered).replace('"hunter2"', hidden));
  expect(shown).toContain('  access_key: ${TIDEMARK_SECRET_A}\n');
  const swept = document.write({ ...entered, sweep: true }, form('s3'), true);
  expect(swept).not.toContain('hunter2');
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

test('a mapping that need not be there is absent until its kind is chosen', () => {
  expect(write(load({ target: 's3' }))).not.toContain('encryption');
  const chosen = write(on('s3', { 'encryption.kind': 'sse-kms', 'encryption.key_id': 'lab' }));
  expect(chosen).toContain('  encryption:\n    kind: sse-kms\n    key_id: lab\n');
});

test('every kind of target is written with all that it requires', () => {
  for (const { form } of targets) {
    const one = load({ target: form.name });
    expect(said(one), form.name).toEqual({});
    expect(write(one)).toMatch(new RegExp(`target:( ${form.name}|\\n  kind: ${form.name})\\n`));
  }
});

test('what must be chosen and was not is the first choice', () => {
  const text = write(load({ target: 'datafusion' }));
  expect(text).toContain('  - prepare: {tables: tpch}\n');
  expect(text).toContain('    load:\n      tables: tpch\n');
  const sales = write(volume('datafusion', { tables: 'tpcds' }));
  expect(sales).toContain('  - cleanup: {tables: tpcds}\n');
  expect(said(volume('datafusion', { tables: ' ' }))).toEqual({ 'volumeStages.0.tables': 'Enter a value.' });
});

test('a data set is loaded and dropped as the loads on it need it, once', () => {
  const main = { name: 'main', values: { workload: 'kv', rows: '10k', clients: '4', for: '60s' } };
  const volumeStages = [main, { ...main, name: 'again', values: { ...main.values, clients: '8' } }];
  const text = write(load({ target: 'postgres', volumeStages }));
  expect(text.match(/- prepare: .*/g)).toEqual(['- prepare: {workload: kv, rows: 10k}']);
  expect(text.match(/- cleanup: .*/g)).toEqual(['- cleanup: {workload: kv, rows: 10k}']);
});

test('a key of a load is written once, although several workloads have it', () => {
  const values = { workload: 'ycsb/a', distribution: 'uniform' };
  const text = write(
    load({ target: 'postgres', prepare: false, cleanUp: false, volumeStages: [{ name: 'main', values }] }),
  );
  expect(text.match(/distribution: uniform/g)).toHaveLength(1);
});

test('volumes have the keys that their engine declares, and lists make a sweep', () => {
  const values = {
    pattern: 'randread, randrw',
    block_size: '4KiB',
    depth: '1, 8, 32',
    reads: '70%',
    fsync: '32',
    for: '60s',
  };
  expect(write(volume('file', values, { size: '1GiB' }))).toBe(`name: my-workload
target:
  kind: file
  path: /mnt/data/tidemark
  size: 1GiB
stages:
  - prepare: {}
  - name: main
    load:
      fsync: 32
      pattern: [randread, randrw]
      block_size: 4KiB
      depth: [1, 8, 32]
      reads: 70%
      for: 60s
  - cleanup: {}
`);
  expect(said(volume('file', { pattern: ' ' }))).toEqual({ 'volumeStages.0.pattern': 'Enter a value.' });
  const split = write(volume('file', { pattern: 'randread', block_size: '{4KiB: 60, 64KiB: 40}' }));
  expect(split).toContain('block_size: {4KiB: 60, 64KiB: 40}\n');
});

test('devices are not removed, and nothing is set that need not be', () => {
  const text = write(load({ target: 'device' }));
  expect(text).toContain('  path: /dev/sdb\nstages:\n  - prepare: {}\n');
  expect(text).not.toContain('cleanup');
  expect(text).not.toContain('journal');
});

test('several loads are stages in their order', () => {
  const text = write(
    load({ stages: [firstStage, { ...firstStage, name: 'reads', write: 0, more: { ramp_up: '10s' } }] }),
  );
  const names = [...text.matchAll(/^  - (?:name: )?([\w-]+)/gm)].map(([, name]) => name);
  expect(names).toEqual(['init', 'prepare', 'main', 'reads', 'cleanup', 'dispose']);
  expect(text).toContain('      ramp_up: 10s\n');
  expect(said(load({ stages: [firstStage, firstStage] }))).toEqual({
    'stages.1.name': 'Another load has this name.',
  });
});

test('a sweep of sizes and workers is an evaluation', () => {
  const swept = load({ sweep: true, sizes: '4KiB, 1-8MiB', levels: '8, 64', repeats: 2, verify: true });
  const text = write({ ...swept, serviceLevel: 'p95 <= 200ms + size / 1MBps' });
  expect(text).toContain('name: my-workload\narms:\n  - name: embedded\n    target: embedded\nloads:\n');
  expect(text).toContain('  - name: 4KiB\n    content: {verify: true}\n    stages:\n      - init: {containers: 1-4}\n');
  expect(text).toContain('  - name: "1-8MiB"\n');
  expect(text).toContain('sizes: "u(1,8)MiB"}');
  expect(text).toContain('levels: {workers: [8, 64]}\nrepeats: 2\nservice_level: "p95 <= 200ms + size / 1MBps"\n');
  expect(text).not.toMatch(/^ {6,}workers: 16/m);
  expect(runsOf(swept)).toBe(8);
  expect(said(swept)).toEqual({});
  expect(said({ ...swept, levels: '8, 8' })).toHaveProperty('levels');
  expect(said({ ...swept, repeats: 1000 }).repeats).toContain('runs');
});

test('sizes are read as people write them', () => {
  expect(['64KiB', '64 kib', '4-64KiB', '4 to 64 MB', '5-5GB'].map(sizeText)).toEqual([
    '64KiB',
    '64KiB',
    'u(4,64)KiB',
    'u(4,64)MB',
    '5GB',
  ]);
  expect(['', '64', 'KiB', '0KB', '8-4KiB', '64KiB: x'].map(sizeText)).toEqual([null, null, null, null, null, null]);
});

test('deletes bring a pool that knows what exists', () => {
  const text = write(staged({ delete: 10 }));
  expect(text).toContain('      objects: 1-2000\n      pool: {existing: 1-1000}\n');
  expect(text).toContain('- get: {weight: 70}\n');
});

test('a rate, a spread of sizes and names that YAML would misread', () => {
  const text = write(staged({ pace: 'rate' }, { sizes: '4-64KiB', name: 'on: #1' }));
  expect(text).toContain('      rate: 500/s\n');
  expect(text).toContain('sizes: "u(4,64)KiB"');
  expect(text).toContain('name: "on: #1"\n');
});

test('what cannot be meant is objected to', () => {
  expect(said(firstLoad)).toEqual({});
  const wrong = said(staged({ workers: 0, read: 0, write: 0 }, { name: ' ', sizes: '8-4KiB' }));
  expect(Object.keys(wrong).sort()).toEqual(['name', 'sizes', 'stages.0.read', 'stages.0.workers']);
});
