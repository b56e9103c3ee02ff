import { expect, test } from 'vitest';
import { firstLoad, objections, type Load } from './load';
import { write } from './write';

const load = (changes: Partial<Load>): Load => ({ ...firstLoad, ...changes });

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
  const text = write(load({ target: 's3', endpoint: 'http://10.0.0.1:7480' }));
  expect(text).toContain('  endpoint: "http://10.0.0.1:7480"\n');
  expect(text).toContain('  secret_key: ${TIDEMARK_SECRET_KEY}\n');
  expect(objections(load({ target: 's3', secretKey: 'hunter2' })).secretKey).toContain('never the key itself');
});

test('several endpoints are a list', () => {
  const text = write(load({ target: 's3', endpoint: 'http://a:1, http://b:1' }));
  expect(text).toContain('endpoints: ["http://a:1", "http://b:1"]');
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
  expect(objections(firstLoad)).toEqual({});
  const said = objections(load({ name: ' ', workers: 0, read: 0, write: 0, sizeFrom: 8, sizeTo: 4 }));
  expect(Object.keys(said).sort()).toEqual(['name', 'read', 'sizeTo', 'workers']);
});
