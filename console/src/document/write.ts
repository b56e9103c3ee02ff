/** Writes the Tidemark YAML of a form. The syntax is that of `docs/document.md`. */

import type { Load } from './load';

/** A text as YAML: as it is where nothing in it can be taken for anything else, in quotes otherwise. */
function text(value: string): string {
  const plain = /^[A-Za-z_/][\w ./-]*$/.test(value) && !/\s$/.test(value);
  const word = /^(true|false|yes|no|on|off|null)$/i.test(value);
  return plain && !word ? value : JSON.stringify(value);
}

const range = (last: number) => (last === 1 ? '1' : `1-${last}`);
const after = (objects: number) => `${objects + 1}-${2 * objects}`;

function sizes({ sizeFrom, sizeTo, sizeUnit }: Load): string {
  return sizeFrom === sizeTo ? `${sizeFrom}${sizeUnit}` : `"u(${sizeFrom},${sizeTo})${sizeUnit}"`;
}

function target(load: Load): string[] {
  if (load.target === 'embedded') return ['target: embedded'];
  const endpoints = load.endpoint.split(',').map((one) => text(one.trim()));
  const [only, ...others] = endpoints;
  return [
    'target:',
    '  kind: s3',
    others.length === 0 ? `  endpoint: ${only}` : `  endpoints: [${endpoints.join(', ')}]`,
    `  access_key: ${load.accessKey}`,
    `  secret_key: ${load.secretKey}`,
    ...(load.region && load.region !== 'us-east-1' ? [`  region: ${text(load.region)}`] : []),
  ];
}

/**
 * With deletes, a pool keeps count of what exists, so that nothing asks for an object that is gone. Without, reads have the
 * objects that were prepared and writes make others, as COSBench's workloads do.
 */
function operations(load: Load, pool: boolean): string[] {
  const lines: string[] = [];
  const add = (verb: string, weight: number, settings: string) => {
    if (weight > 0) lines.push(`        - ${verb}: {weight: ${weight}${settings}}`);
  };
  const old = pool ? '' : `, objects: ${range(load.objects)}`;
  const fresh = pool ? '' : `, objects: ${after(load.objects)}`;
  add('get', load.read, old);
  add('put', load.write, `${fresh}, sizes: ${sizes(load)}`);
  add('delete', load.delete, '');
  add('list', load.list, ', page: 100');
  return lines;
}

export function write(load: Load): string {
  const containers = range(load.containers);
  const all = range(2 * load.objects);
  const pool = load.delete > 0;
  // What is there already counts as existing, whether this document prepared it or an earlier one did.
  const poolLines = [`      objects: ${all}`, `      pool: {existing: ${range(load.objects)}}`];
  const lines = [
    `name: ${text(load.name.trim())}`,
    ...target(load),
    ...(load.verify ? ['content: {verify: true}'] : []),
    'stages:',
    ...(load.prepare
      ? [
          `  - init: {containers: ${containers}}`,
          `  - prepare: {workers: 8, containers: ${containers}, objects: ${range(load.objects)}, sizes: ${sizes(load)}}`,
        ]
      : []),
    '  - name: main',
    '    load:',
    `      workers: ${load.workers}`,
    ...(load.warmUpSeconds > 0 ? [`      warm_up: ${load.warmUpSeconds}s`] : []),
    `      for: ${load.seconds}s`,
    ...(load.pace === 'rate' ? [`      rate: ${load.rate}/s`, '      arrivals: poisson'] : []),
    `      containers: ${containers}`,
    ...(pool ? poolLines : []),
    '      operations:',
    ...operations(load, pool),
    ...(load.cleanUp
      ? [
          `  - cleanup: {workers: 8, containers: ${containers}, objects: ${all}}`,
          `  - dispose: {containers: ${containers}}`,
        ]
      : []),
  ];
  return lines.join('\n') + '\n';
}
