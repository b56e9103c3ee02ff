/** Writes the Tidemark YAML of a form. The syntax is that of `docs/document.md`. */

import type { TargetForm } from '../api';
import {
  chosenOf,
  furtherKeys,
  items,
  levelsOf,
  settingsOf,
  sizeText,
  volumeKeys,
  workOf,
  type Load,
  type Stage,
  type VolumeStage,
} from './load';
import { target, text, value, type Values } from './target';

const range = (last: number) => (last === 1 ? '1' : `1-${last}`);
const after = (objects: number) => `${objects + 1}-${2 * objects}`;
const indented = (lines: string[], by: string) => lines.map((line) => by + line);

/** A size within a list of settings: what has brackets needs quotes. */
function size(item: string): string {
  const known = sizeText(item) ?? item;
  return known.includes('(') ? JSON.stringify(known) : known;
}

/**
 * With deletes, a pool keeps count of what exists, so that nothing asks for an object that is gone. Without, reads have the
 * objects that were prepared and writes make others, as COSBench's workloads do.
 */
function operations(load: Load, stage: Stage, sizes: string, pool: boolean): string[] {
  const lines: string[] = [];
  const add = (verb: string, weight: number, settings: string) => {
    if (weight > 0) lines.push(`        - ${verb}: {weight: ${weight}${settings}}`);
  };
  const old = pool ? '' : `, objects: ${range(load.objects)}`;
  const fresh = pool ? '' : `, objects: ${after(load.objects)}`;
  add('get', stage.read, old);
  add('put', stage.write, `${fresh}, sizes: ${sizes}`);
  add('delete', stage.delete, '');
  add('list', stage.list, ', page: 100');
  return lines;
}

/** Further keys of a load, in the order in which they are declared. */
function further(form: { keys: TargetForm['form']['keys'] }, values: Values): string[] {
  const given = form.keys.filter((key) => (values[key.name] ?? '').trim());
  return given.map((key) => `      ${key.name}: ${value(key, values[key.name]!.trim())}`);
}

/** A load on objects. */
function stage(load: Load, stage: Stage, sizes: string, form: TargetForm): string[] {
  const open = stage.pace === 'rate' && !load.sweep;
  const pool = stage.delete > 0;
  // What is there already counts as existing, whether this document prepared it or an earlier one did.
  const poolLines = [`      objects: ${range(2 * load.objects)}`, `      pool: {existing: ${range(load.objects)}}`];
  return [
    `  - name: ${text(stage.name.trim())}`,
    '    load:',
    // The levels of a sweep replace it.
    ...(load.sweep ? [] : [`      workers: ${stage.workers}`]),
    ...(stage.warmUpSeconds > 0 ? [`      warm_up: ${stage.warmUpSeconds}s`] : []),
    `      for: ${stage.seconds}s`,
    ...(open ? [`      rate: ${stage.rate}/s`, '      arrivals: poisson'] : []),
    ...further(furtherKeys(form), stage.more),
    `      containers: ${range(load.containers)}`,
    ...(pool ? poolLines : []),
    '      operations:',
    ...operations(load, stage, sizes, pool),
  ];
}

/** The stages of loads on objects of one size. */
function objects(load: Load, sizes: string, form: TargetForm): string[] {
  const containers = range(load.containers);
  const all = range(2 * load.objects);
  return [
    ...(load.prepare
      ? [
          `  - init: {containers: ${containers}}`,
          `  - prepare: {workers: 8, containers: ${containers}, objects: ${range(load.objects)}, sizes: ${sizes}}`,
        ]
      : []),
    ...load.stages.flatMap((one) => stage(load, one, sizes, form)),
    ...(load.cleanUp
      ? [
          `  - cleanup: {workers: 8, containers: ${containers}, objects: ${all}}`,
          `  - dispose: {containers: ${containers}}`,
        ]
      : []),
  ];
}

/** A work before or after the loads: nothing is said of it, or once for each data set that they have. */
function around(load: Load, form: TargetForm, name: string): string[] {
  const work = workOf(form, name);
  if (!work) return [];
  const given = ({ values }: VolumeStage) => further(work, chosenOf(work, values)).map((line) => line.trim());
  const all = work.keys.some((key) => key.required) ? load.volumeStages.map((one) => given(one).join(', ')) : [''];
  return [...new Set(all)].map((settings) => `  - ${name}: {${settings}}`);
}

/** The stages of loads on volumes and databases. */
function volumes(load: Load, form: TargetForm): string[] {
  const keys = volumeKeys(form);
  const one = ({ name, values }: VolumeStage) => [
    `  - name: ${text(name.trim())}`,
    '    load:',
    ...further(keys, chosenOf(keys, values)),
  ];
  return [
    ...(load.prepare ? around(load, form, 'prepare') : []),
    ...load.volumeStages.flatMap(one),
    ...(load.cleanUp ? around(load, form, 'cleanup') : []),
  ];
}

/** Whether the document is an evaluation: every size with every number of workers. */
export const isSweep = (load: Load, form: TargetForm) => load.sweep && form.subject === 'objects';

/** An evaluation with one arm, a load of each size, and levels of workers. */
function sweep(load: Load, form: TargetForm, hide: boolean): string[] {
  const one = (item: string) => [
    `  - name: ${text(item.replaceAll(/\s/g, ''))}`,
    ...(load.verify ? ['    content: {verify: true}'] : []),
    '    stages:',
    ...indented(objects(load, size(item), form), '    '),
  ];
  return [
    'arms:',
    `  - name: ${form.form.name}`,
    ...indented(target(form, settingsOf(load, form), hide), '    '),
    'loads:',
    ...items(load.sizes).flatMap(one),
    `levels: {workers: [${(levelsOf(load.levels) ?? []).join(', ')}]}`,
    `repeats: ${load.repeats}`,
    ...(load.serviceLevel.trim() ? [`service_level: ${text(load.serviceLevel.trim())}`] : []),
  ];
}

function workload(load: Load, form: TargetForm, hide: boolean): string[] {
  return [
    ...target(form, settingsOf(load, form), hide),
    ...(load.verify ? ['content: {verify: true}'] : []),
    'stages:',
    ...(form.subject === 'objects' ? objects(load, size(items(load.sizes)[0] ?? ''), form) : volumes(load, form)),
  ];
}

/** The document; `hide` puts dots in the place of secrets, for those who look on. */
export function write(load: Load, form: TargetForm, hide = false): string {
  const lines = isSweep(load, form) ? sweep(load, form, hide) : workload(load, form, hide);
  return [`name: ${text(load.name.trim())}`, ...lines].join('\n') + '\n';
}
