/** Writes the Tidemark YAML of a form. The syntax is that of `docs/document.md`. */

import type { TargetForm } from '../api';
import { settingsOf, type Load } from './load';
import { target, text } from './target';

const range = (last: number) => (last === 1 ? '1' : `1-${last}`);
const after = (objects: number) => `${objects + 1}-${2 * objects}`;

function sizes({ sizeFrom, sizeTo, sizeUnit }: Load): string {
  return sizeFrom === sizeTo ? `${sizeFrom}${sizeUnit}` : `"u(${sizeFrom},${sizeTo})${sizeUnit}"`;
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

/** How long the load lasts, and when its operations are due. */
function timing(load: Load): string[] {
  return [
    ...(load.warmUpSeconds > 0 ? [`      warm_up: ${load.warmUpSeconds}s`] : []),
    `      for: ${load.seconds}s`,
    ...(load.pace === 'rate' ? [`      rate: ${load.rate}/s`, '      arrivals: poisson'] : []),
  ];
}

/** The stages of a load on objects. */
function objects(load: Load): string[] {
  const containers = range(load.containers);
  const all = range(2 * load.objects);
  const pool = load.delete > 0;
  // What is there already counts as existing, whether this document prepared it or an earlier one did.
  const poolLines = [`      objects: ${all}`, `      pool: {existing: ${range(load.objects)}}`];
  return [
    ...(load.prepare
      ? [
          `  - init: {containers: ${containers}}`,
          `  - prepare: {workers: 8, containers: ${containers}, objects: ${range(load.objects)}, sizes: ${sizes(load)}}`,
        ]
      : []),
    '  - name: main',
    '    load:',
    `      workers: ${load.workers}`,
    ...timing(load),
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
}

/** The stages of a load on volumes. */
function volumes(load: Load): string[] {
  const direction = load.write === 0 ? 'read' : load.read === 0 ? 'write' : 'rw';
  const reads = Math.round((load.read / (load.read + load.write)) * 100);
  return [
    ...(load.prepare ? ['  - prepare: {}'] : []),
    '  - name: main',
    '    load:',
    `      pattern: ${load.random ? 'rand' : ''}${direction}`,
    ...(direction === 'rw' ? [`      reads: ${reads}%`] : []),
    `      block_size: ${load.sizeFrom}${load.sizeUnit}`,
    `      depth: ${load.depth}`,
    ...timing(load),
    ...(load.cleanUp ? ['  - cleanup: {}'] : []),
  ];
}

export function write(load: Load, form: TargetForm): string {
  const lines = [
    `name: ${text(load.name.trim())}`,
    ...target(form, settingsOf(load, form)),
    ...(load.verify ? ['content: {verify: true}'] : []),
    'stages:',
    ...(form.subject === 'objects' ? objects(load) : volumes(load)),
  ];
  return lines.join('\n') + '\n';
}
