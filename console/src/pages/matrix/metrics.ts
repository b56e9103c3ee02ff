/** What can be read from a row of the matrix. */

import type { MatrixRow } from '../../api';
import { bandwidth, bytes, count, latency, percent, rate } from '../../lib/format';

/** As in `MatrixRow.percentiles_us`. */
export const percentileNames = ['p50', 'p60', 'p80', 'p90', 'p95', 'p99', 'p99.9', 'p99.99', 'max'];

export interface Metric {
  id: string;
  title: string;
  /** Whether the column is shown from the beginning. */
  shown: boolean;
  /** Whether it can be drawn; counts of a run say little beside another's. */
  drawn: boolean;
  value: (row: MatrixRow) => number | null;
  format: (value: number) => string;
}

const time = (id: string, title: string, shown: boolean, value: Metric['value']): Metric => ({
  id,
  title,
  shown,
  drawn: true,
  value,
  format: latency,
});

export const metrics: Metric[] = [
  { id: 'throughput', title: 'Throughput', shown: true, drawn: true, value: (row) => row.throughput, format: rate },
  { id: 'bandwidth', title: 'Bandwidth', shown: true, drawn: true, value: (row) => row.bandwidth, format: bandwidth },
  time('mean', 'Mean', false, (row) => row.mean_us),
  ...percentileNames.map((name, at) =>
    time(name, name, ['p50', 'p95', 'p99'].includes(name), (row) => row.percentiles_us[at] ?? null),
  ),
  { id: 'success', title: 'Success', shown: true, drawn: true, value: (row) => row.success_ratio, format: percent },
  { id: 'ok', title: 'Succeeded', shown: false, drawn: false, value: (row) => row.ok, format: count },
  { id: 'failed', title: 'Failed', shown: false, drawn: false, value: (row) => row.failed, format: count },
  { id: 'bytes', title: 'Moved', shown: false, drawn: false, value: (row) => row.bytes, format: bytes },
];
