/** What each driver does of a work: a strip for each over time, and a table. */

import { useMemo, useState } from 'preact/hooks';
import { bandwidth, clock, count, latency, percent, plural, rate } from '../../lib/format';
import type { Sorting } from '../../lib/order';
import { Load } from '../../parts/bar';
import { Choice } from '../../parts/choice';
import { Panel } from '../../parts/panel';
import { type Column, Table } from '../../parts/table';
import type { WorkSeconds } from './buffer';
import { Heat } from './heat';
import { type DriverNow, driversNow, strips, type Metric } from './strips';

const metrics: readonly (readonly [Metric, string])[] = [
  ['ok', 'Throughput'],
  ['p99_us', 'p99'],
  ['busy', 'Busy'],
  ['failed', 'Errors'],
];

const formats: Record<Metric, (value: number) => string> = { ok: rate, p99_us: latency, busy: percent, failed: count };

/** What a driver does is told where it is this much less than what the others do. */
const little = 0.8;

const columns: Column<DriverNow>[] = [
  { id: 'driver', title: 'Driver', value: (one) => one.driver },
  { id: 'ok', title: 'Throughput', number: true, value: (one) => one.ok, show: (one) => rate(one.ok) },
  {
    id: 'share',
    title: 'Vs. median',
    number: true,
    value: (one) => one.ofMedian,
    show: (one) =>
      one.ofMedian < little ? (
        <span class="warn">▼ {percent(one.ofMedian)}</span>
      ) : (
        percent(Math.round(one.ofMedian * 1000) / 1000)
      ),
  },
  { id: 'failed', title: 'Errors', number: true, value: (one) => one.failed, show: (one) => count(one.failed) },
  { id: 'bytes', title: 'Bandwidth', number: true, value: (one) => one.bytes, show: (one) => bandwidth(one.bytes) },
  { id: 'p50', title: 'p50', number: true, value: (one) => one.p50_us, show: (one) => latency(one.p50_us) },
  { id: 'p99', title: 'p99', number: true, value: (one) => one.p99_us, show: (one) => latency(one.p99_us) },
  { id: 'busy', title: 'Busy', value: (one) => one.busy, show: (one) => <Load share={one.busy} /> },
];

interface Props {
  work: WorkSeconds;
  /** All drivers of the run, also those that say nothing. */
  all: readonly string[];
  away: { silent: string[]; lost: string[] };
  span: number;
  turn: number;
}

export function Shares({ work, all, away, span, turn }: Props) {
  const [metric, setMetric] = useState<Metric>('ok');
  const [table, setTable] = useState<'strips' | 'table'>('strips');
  const [sorting, sort] = useState<Sorting | null>(null);
  const now = useMemo(() => driversNow(work.seconds), [work, turn]);
  const drawn = useMemo(() => strips(work.seconds, span, metric, all), [work, turn, span, metric, all.join()]);
  if (now.length === 0) return null;
  const gone = away.silent.length + away.lost.length;
  const number = drawn.names.length;
  const slow = now.filter((one) => one.ofMedian < little);
  return (
    <Panel
      title={gone > 0 ? `${number - gone} of ${plural(number, 'driver')}` : plural(number, 'driver')}
      flush
      aside={
        <span class="row end">
          {table === 'strips' && <Choice label="Metric" value={metric} options={metrics} change={setMetric} />}
          <Choice
            label="View"
            value={table}
            options={[
              ['strips', 'Over time'],
              ['table', 'Table'],
            ]}
            change={setTable}
          />
        </span>
      }
    >
      {away.silent.length > 0 && (
        <p class="slow warn">▼ Silent, and not in these numbers: {away.silent.join(', ')} (hatched)</p>
      )}
      {away.lost.length > 0 && <p class="slow bad">✕ Lost: {away.lost.join(', ')}</p>}
      {slow.length > 0 && (
        <p class="slow warn">
          ▼{' '}
          {slow
            .slice(0, 5)
            .map(
              (one) =>
                `${one.driver} reaches ${percent(Math.round(one.ofMedian * 100) / 100)} of the median throughput`,
            )
            .join(', ')}
          {slow.length > 5 && `, and ${slow.length - 5} more are slow`}
        </p>
      )}
      {table === 'table' ? (
        <Table
          label="Drivers in the latest second"
          rows={now}
          columns={columns}
          id={(one) => one.driver}
          sorting={sorting}
          sort={sort}
          most={420}
        />
      ) : (
        <Heat
          strips={drawn}
          place={clock}
          format={formats[metric]}
          label={`${metrics.find(([key]) => key === metric)?.[1] ?? ''} of each driver over time`}
          whole={metric === 'busy' ? 1 : undefined}
        />
      )}
    </Panel>
  );
}
