/** What a form says about a load on object storage: everything that the document writer needs. */

import { count } from '../lib/format';

export type Unit = 'B' | 'KB' | 'MB' | 'GB' | 'KiB' | 'MiB' | 'GiB';

export interface Load {
  name: string;
  target: 'embedded' | 's3';
  endpoint: string;
  accessKey: string;
  secretKey: string;
  region: string;
  containers: number;
  /** Objects that are there in each container when the load begins. */
  objects: number;
  /** Smallest and largest size of an object; the same: all are of one size. */
  sizeFrom: number;
  sizeTo: number;
  sizeUnit: Unit;
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
  prepare: boolean;
  cleanUp: boolean;
  verify: boolean;
}

export const firstLoad: Load = {
  name: 'my-workload',
  target: 'embedded',
  endpoint: 'http://127.0.0.1:7480',
  accessKey: '${TIDEMARK_ACCESS_KEY}',
  secretKey: '${TIDEMARK_SECRET_KEY}',
  region: 'us-east-1',
  containers: 4,
  objects: 1000,
  sizeFrom: 64,
  sizeTo: 64,
  sizeUnit: 'KiB',
  read: 70,
  write: 30,
  delete: 0,
  list: 0,
  pace: 'workers',
  workers: 16,
  rate: 500,
  seconds: 60,
  warmUpSeconds: 5,
  prepare: true,
  cleanUp: true,
  verify: false,
};

/** A key that stands in the document as it is, where everybody who can look would want a reference to the environment. */
export const isReference = (secret: string) => /^\$\{[A-Za-z_][A-Za-z0-9_]*\}$/.test(secret);

/** What keeps the document from being written, by field. */
export function objections(load: Load): Partial<Record<keyof Load, string>> {
  const said: Partial<Record<keyof Load, string>> = {};
  const least = (field: keyof Load, least: number, most = 1e12) => {
    const value = load[field] as number;
    if (!Number.isInteger(value) || value < least || value > most) {
      said[field] = `Enter a whole number from ${count(least)}${most < 1e12 ? ` to ${count(most)}` : ''}.`;
    }
  };
  if (!load.name.trim()) said.name = 'Enter a name.';
  least('containers', 1);
  least('objects', 1);
  least('sizeFrom', 1);
  least('sizeTo', Math.max(1, load.sizeFrom));
  for (const share of ['read', 'write', 'delete', 'list'] as const) least(share, 0, 1_000_000);
  if (load.read + load.write + load.delete + load.list === 0) said.read = 'Give at least one operation a share.';
  least('workers', 1, 1_000_000);
  if (load.pace === 'rate') least('rate', 1);
  least('seconds', 1);
  least('warmUpSeconds', 0);
  if (load.target === 's3') {
    const known = load.endpoint
      .split(',')
      .every((one) => /^https?:\/\/\S+$/.test(one.trim()) || isReference(one.trim()));
    if (!known) said.endpoint = 'Enter a URL such as http://10.0.0.1:7480; separate several with commas.';
    if (!isReference(load.accessKey)) said.accessKey = 'Enter a reference such as ${TIDEMARK_ACCESS_KEY}.';
    if (!isReference(load.secretKey))
      said.secretKey = 'Enter a reference such as ${TIDEMARK_SECRET_KEY}, never the key itself.';
  }
  return said;
}
