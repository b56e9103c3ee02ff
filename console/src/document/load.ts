/** What a form says about a load: everything that the document writer needs. */

import type { TargetForm } from '../api';
import { count } from '../lib/format';
import { fields, isReference, valueOf, type Values } from './target';

export type Unit = 'B' | 'KB' | 'MB' | 'GB' | 'KiB' | 'MiB' | 'GiB';

export interface Load {
  name: string;
  /** The kind of target. */
  target: string;
  /** What was entered of each kind. */
  settings: Record<string, Values>;
  containers: number;
  /** Objects that are there in each container when the load begins. */
  objects: number;
  /** Smallest and largest size of an object; the same: all are of one size. Of volumes, the first is the block size. */
  sizeFrom: number;
  sizeTo: number;
  sizeUnit: Unit;
  /** Shares of the mix; they need not add up to anything. */
  read: number;
  write: number;
  delete: number;
  list: number;
  /** Whether offsets within volumes are random. */
  random: boolean;
  /** Operations in flight per client of a volume. */
  depth: number;
  /** Closed: workers go on as soon as they are done. Open: operations are due at a rate. */
  pace: 'workers' | 'rate';
  workers: number;
  /** Operations per second. */
  rate: number;
  seconds: number;
  warmUpSeconds: number;
  prepare: boolean;
  cleanUp: boolean;
  verify: boolean;
}

export const firstLoad: Load = {
  name: 'my-workload',
  target: 'embedded',
  settings: {},
  containers: 4,
  objects: 1000,
  sizeFrom: 64,
  sizeTo: 64,
  sizeUnit: 'KiB',
  read: 70,
  write: 30,
  delete: 0,
  list: 0,
  random: true,
  depth: 8,
  pace: 'workers',
  workers: 16,
  rate: 500,
  seconds: 60,
  warmUpSeconds: 5,
  prepare: true,
  cleanUp: true,
  verify: false,
};

/** What was entered of a target's kind. */
export const settingsOf = (load: Load, { form }: TargetForm): Values => load.settings[form.name] ?? {};

/** What keeps the document from being written, by field; those of the target by their path. */
export function objections(load: Load, target: TargetForm): Record<string, string> {
  const said: Record<string, string> = {};
  const objects = target.subject === 'objects';
  const least = (field: keyof Load, least: number, most = 1e12) => {
    const value = load[field] as number;
    if (!Number.isInteger(value) || value < least || value > most) {
      said[field] = `Enter a whole number from ${count(least)}${most < 1e12 ? ` to ${count(most)}` : ''}.`;
    }
  };
  if (!load.name.trim()) said.name = 'Enter a name.';
  least('sizeFrom', 1);
  for (const share of ['read', 'write'] as const) least(share, 0, 1_000_000);
  if (objects) {
    least('containers', 1);
    least('objects', 1);
    least('sizeTo', Math.max(1, load.sizeFrom));
    for (const share of ['delete', 'list'] as const) least(share, 0, 1_000_000);
    least('workers', 1, 1_000_000);
  } else {
    least('depth', 1, 32_768);
  }
  const shares = load.read + load.write + (objects ? load.delete + load.list : 0);
  if (shares === 0) said.read = 'Give at least one operation a share.';
  if (load.pace === 'rate') least('rate', 1);
  least('seconds', 1);
  least('warmUpSeconds', 0);
  const values = settingsOf(load, target);
  for (const field of fields(target.form, values)) {
    const { path, key, kind } = field;
    if (kind) continue;
    const value = valueOf(field, values).trim();
    if (key.required && !value) said[path] = 'Enter a value.';
    else if (key.secret && value && !isReference(value)) {
      said[path] = `Enter a reference such as ${key.example || '${TIDEMARK_SECRET_KEY}'}, never the key itself.`;
    }
  }
  return said;
}
