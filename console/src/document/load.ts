/** What a form says about a load: everything that the document writer needs. */

import type { Form, TargetForm } from '../api';
import { count } from '../lib/format';
import { fields, valueOf, type Values } from './target';

/** A load on objects that is measured: one stage. */
export interface Stage {
  name: string;
  /** Shares of the mix; they need not add up to anything. */
  read: number;
  write: number;
  delete: number;
  list: number;
  /** Closed: workers go on as soon as they are done. Open: operations are due at a rate. */
  pace: 'workers' | 'rate';
  workers: number;
  /** Operations per second. */
  rate: number;
  seconds: number;
  warmUpSeconds: number;
  /** Further keys, as the engine declares them. */
  more: Values;
}

/** A load on volumes: its keys, as the engine declares them. */
export interface VolumeStage {
  name: string;
  values: Values;
}

export interface Load {
  name: string;
  /** The kind of target. */
  target: string;
  /** What was entered of each kind. */
  settings: Record<string, Values>;
  containers: number;
  /** Objects that are there in each container when the load begins. */
  objects: number;
  /** Sizes of objects: `64KiB`, `4-64KiB`; of a sweep several, with commas between them. */
  sizes: string;
  stages: Stage[];
  volumeStages: VolumeStage[];
  /** Whether every size is measured with every number of workers, several times over. */
  sweep: boolean;
  /** Numbers of workers of a sweep: `8, 16, 32`. */
  levels: string;
  repeats: number;
  /** What a level must meet to count, or empty. */
  serviceLevel: string;
  prepare: boolean;
  cleanUp: boolean;
  verify: boolean;
}

export const firstStage: Stage = {
  name: 'main',
  read: 70,
  write: 30,
  delete: 0,
  list: 0,
  pace: 'workers',
  workers: 16,
  rate: 500,
  seconds: 60,
  warmUpSeconds: 5,
  more: {},
};

export const firstVolumeStage: VolumeStage = {
  name: 'main',
  // A document gets those that its engine declares: a pattern on volumes, a workload on databases.
  values: {
    pattern: 'randread',
    block_size: '4KiB',
    depth: '8',
    workload: 'sysbench/oltp_read_write',
    for: '60s',
    warm_up: '5s',
  },
};

export const firstLoad: Load = {
  name: 'my-workload',
  target: 'embedded',
  settings: {},
  containers: 4,
  objects: 1000,
  sizes: '64KiB',
  stages: [firstStage],
  volumeStages: [firstVolumeStage],
  sweep: false,
  levels: '8, 16, 32, 64',
  repeats: 3,
  serviceLevel: '',
  prepare: true,
  cleanUp: true,
  verify: false,
};

/** Works that a sweep multiplies to, at most: more is a slip of the pen. */
const mostRuns = 1000;

/** What was entered of a target's kind. */
export const settingsOf = (load: Load, { form }: TargetForm): Values => load.settings[form.name] ?? {};

/** The work of this kind that a target can have, with its keys. */
export const workOf = ({ works }: TargetForm, name: string): Form | undefined =>
  works.find((work) => work.name === name);

/** Keys of a load on objects that the form has fields of its own for. */
const own = new Set(['name', 'workers', 'for', 'warm_up', 'rate', 'arrivals', 'containers', 'objects', 'sizes']);

/** The further keys of a load on objects. */
export function furtherKeys(target: TargetForm): Form {
  const load = workOf(target, 'load') ?? { name: 'load', about: '', keys: [], one_of: [] };
  return { ...load, keys: load.keys.filter((key) => !own.has(key.name)) };
}

/** The keys of a load on volumes. */
export function volumeKeys(target: TargetForm): Form {
  const load = workOf(target, 'load') ?? { name: 'load', about: '', keys: [], one_of: [] };
  return { ...load, keys: load.keys.filter((key) => key.name !== 'name') };
}

/** What was entered of a load's keys, and the first choice, or the example, of what must be there and nobody has touched. */
export function chosenOf(form: Form, values: Values): Values {
  const open = form.keys.filter((key) => key.required && values[key.name] === undefined);
  return { ...values, ...Object.fromEntries(open.map((key) => [key.name, key.choices[0] ?? key.example])) };
}

/** The items of a text with commas between them. */
export const items = (text: string): string[] =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean);

/** A size as documents have it: `64KiB`, or `u(4,64)KiB` for all between two; null where it cannot be read. */
export function sizeText(item: string): string | null {
  const found = /^(\d+)(?:\s*(?:-|–|to)\s*(\d+))?\s*([KMG]i?B|B)$/i.exec(item);
  if (!found) return null;
  const [, from, to, unit] = found;
  const known = ['B', 'KB', 'MB', 'GB', 'KiB', 'MiB', 'GiB'].find((one) => one.toLowerCase() === unit!.toLowerCase());
  if (Number(from) < 1 || (to && Number(to) < Number(from))) return null;
  return to && to !== from ? `u(${from},${to})${known}` : `${from}${known}`;
}

/** The numbers of workers of a sweep; null where they cannot be read. */
export function levelsOf(text: string): number[] | null {
  const numbers = items(text).map(Number);
  const good = numbers.length > 0 && numbers.every((one) => Number.isInteger(one) && one >= 1 && one <= 1_000_000);
  return good && new Set(numbers).size === numbers.length ? numbers : null;
}

/** How many runs a sweep is. */
export const runsOf = (load: Load): number =>
  items(load.sizes).length * (levelsOf(load.levels)?.length ?? 0) * load.repeats;

/** What keeps the document from being written, by field; those of the target by their path. */
export function objections(load: Load, target: TargetForm): Record<string, string> {
  const said: Record<string, string> = {};
  const whole = (field: string, value: number, least: number, most = 1e12) => {
    if (!Number.isInteger(value) || value < least || value > most) {
      said[field] = `Enter a whole number from ${count(least)}${most < 1e12 ? ` to ${count(most)}` : ''}.`;
    }
  };
  if (!load.name.trim()) said.name = 'Enter a name.';
  if (target.subject === 'objects') objects(load, said, whole);
  else volumes(load, target, said);
  const values = settingsOf(load, target);
  for (const field of fields(target.form, values)) {
    const { path, key, kind } = field;
    if (!kind && key.required && !valueOf(field, values).trim()) said[path] = 'Enter a value.';
  }
  return said;
}

type Whole = (field: string, value: number, least: number, most?: number) => void;

function objects(load: Load, said: Record<string, string>, whole: Whole): void {
  whole('containers', load.containers, 1);
  whole('objects', load.objects, 1);
  const sizes = items(load.sizes);
  if (sizes.length === 0 || sizes.some((size) => !sizeText(size))) {
    said.sizes = 'Enter sizes such as 64KiB, or 4-64KiB for all between.';
  } else if (!load.sweep && sizes.length > 1) {
    said.sizes = 'Enter one size, or turn this into a sweep.';
  } else if (new Set(sizes).size < sizes.length) {
    said.sizes = 'Enter each size once.';
  }
  if (load.sweep) {
    if (!levelsOf(load.levels)) said.levels = 'Enter different numbers of workers such as 8, 16, 32.';
    whole('repeats', load.repeats, 1, 1000);
    if (!said.levels && !said.repeats && runsOf(load) > mostRuns) {
      said.repeats = `This makes ${count(runsOf(load))} runs; the form writes at most ${count(mostRuns)}.`;
    }
  }
  load.stages.forEach((stage, at) => {
    const field = (name: string) => `stages.${at}.${name}`;
    if (!stage.name.trim()) said[field('name')] = 'Enter a name.';
    else if (load.stages.some((other, before) => before < at && other.name === stage.name)) {
      said[field('name')] = 'Another load has this name.';
    }
    const shares = ['read', 'write', 'delete', 'list'] as const;
    for (const share of shares) whole(field(share), stage[share], 0, 1_000_000);
    if (shares.every((share) => stage[share] === 0)) said[field('read')] = 'Give at least one operation a share.';
    whole(field('workers'), stage.workers, 1, 1_000_000);
    if (stage.pace === 'rate') whole(field('rate'), stage.rate, 1);
    whole(field('seconds'), stage.seconds, 1);
    whole(field('warmUpSeconds'), stage.warmUpSeconds, 0);
  });
}

function volumes(load: Load, target: TargetForm, said: Record<string, string>): void {
  load.volumeStages.forEach(({ name, values }, at) => {
    if (!name.trim()) said[`volumeStages.${at}.name`] = 'Enter a name.';
    else if (load.volumeStages.some((other, before) => before < at && other.name === name)) {
      said[`volumeStages.${at}.name`] = 'Another load has this name.';
    }
    const form = volumeKeys(target);
    const chosen = chosenOf(form, values);
    for (const key of form.keys) {
      if (key.required && !(chosen[key.name] ?? '').trim()) said[`volumeStages.${at}.${key.name}`] = 'Enter a value.';
    }
  });
}
