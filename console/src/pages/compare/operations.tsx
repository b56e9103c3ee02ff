/** Both groups operation by operation: what changed, over time, and how the latencies are distributed. */

import { useMemo, useState } from 'preact/hooks';
import type { ComparedOperation, ComparedSide } from '../../api';
import { clock, count, latency, percent, rate } from '../../lib/format';
import { Chart } from '../../parts/chart';
import { Choice } from '../../parts/choice';
import { Pick } from '../../parts/filter';
import { Panel } from '../../parts/panel';
import { changeOf, curves, overTime, percentile, percentileAt, undrawn } from './lines';

interface Number_ {
  name: string;
  value: (side: ComparedSide) => number | null;
  format: (value: number) => string;
}

const success = ({ ok, failed }: ComparedSide) => (ok + failed > 0 ? ok / (ok + failed) : null);
const time = (name: string, value: Number_['value']): Number_ => ({ name, value, format: latency });

const numbers: Number_[] = [
  { name: 'Throughput', value: (side) => side.throughput, format: rate },
  time('Mean', (side) => side.mean_us),
  time('p50', (side) => percentile(side, 0.5)),
  time('p95', (side) => percentile(side, 0.95)),
  time('p99', (side) => percentile(side, 0.99)),
  { name: 'Success', value: success, format: percent },
];

export const titleOf = ({ load, operation }: ComparedOperation) => (load ? `${operation} (${load})` : operation);

export function Operations({ operations }: { operations: ComparedOperation[] }) {
  return (
    <Panel title="Operations" flush>
      <div class="scroll" tabIndex={0} role="region" aria-label="Changes of each operation">
        <table class="changes">
          <thead>
            <tr>
              <th scope="col">Operation</th>
              {numbers.map(({ name }) => (
                <th scope="col" class="n" key={name}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {operations.map((one) => (
              <tr key={titleOf(one)}>
                <th scope="row">
                  {titleOf(one)}
                  {one.a && one.b ? <Differing a={one.a} b={one.b} /> : <small>only in {one.a ? 'A' : 'B'}</small>}
                </th>
                {numbers.map((number) => (
                  <Cell key={number.name} number={number} {...one} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {operations.some(({ a, b }) => a && b) && (
        <p class="legend-line">
          <small>
            Each cell: A → B, and how much B differs. Means of the runs; percentiles are of all operations of a group
            together. Whether a difference is more than chance is said above.
          </small>
        </p>
      )}
    </Panel>
  );
}

/** What was set differently: a difference of numbers may come from it. */
function Differing({ a, b }: { a: ComparedSide; b: ComparedSide }) {
  const parts = [
    ...(a.workers !== b.workers ? [`${count(a.workers)} → ${count(b.workers)} workers`] : []),
    ...settings(a.config, b.config),
  ];
  return parts.length > 0 ? <small class="warn">differs: {parts.join('; ')}</small> : null;
}

/** The settings that are not the same on both sides. */
function settings(a: string, b: string): string[] {
  const of = (config: string) =>
    new Map(
      config
        .split(';')
        .filter(Boolean)
        .map((pair) => [pair.split('=')[0]!, pair.slice(pair.indexOf('=') + 1)]),
    );
  const [one, other] = [of(a), of(b)];
  const keys = [...new Set([...one.keys(), ...other.keys()])];
  return keys
    .filter((key) => one.get(key) !== other.get(key))
    .map((key) => `${key} ${one.get(key) ?? 'none'} → ${other.get(key) ?? 'none'}`);
}

function Cell({ number, a, b }: { number: Number_; a: ComparedSide | null; b: ComparedSide | null }) {
  const [one, other] = [a && number.value(a), b && number.value(b)];
  const shown = (value: number | null) => (value === null ? '–' : number.format(value));
  const change = changeOf(one, other);
  return (
    <td class="n">
      {a && b ? (
        <>
          <span class="change">{change}</span>
          <small>
            {shown(one)} → {shown(other)}
          </small>
        </>
      ) : (
        shown(one ?? other)
      )}
    </td>
  );
}

export function Charts({ operations }: { operations: ComparedOperation[] }) {
  const [chosen, choose] = useState('0');
  const [metric, setMetric] = useState<'throughput' | 'p99'>('throughput');
  const one = operations[Number(chosen)] ?? operations[0]!;
  const time = useMemo(
    () => overTime(one, (second) => (metric === 'throughput' ? second.throughput : second.p99_us)),
    [one, metric],
  );
  const curve = useMemo(() => curves(one), [one]);
  const left = undrawn(one);
  return (
    <Panel
      title="Over time and percentiles"
      aside={
        operations.length > 1 && (
          <span class="end filters-inline">
            <Pick
              label="Operation"
              value={chosen}
              options={operations.map((operation, at) => [String(at), titleOf(operation)] as const)}
              change={choose}
            />
          </span>
        )
      }
    >
      <div class="charts">
        <Chart
          title={metric === 'throughput' ? 'Throughput' : '99th percentile of each second'}
          {...time}
          format={metric === 'throughput' ? rate : latency}
          place={clock}
          axis="Since the start"
          height={240}
          aside={
            <Choice
              label="Metric over time"
              value={metric}
              options={[
                ['throughput', 'op/s'],
                ['p99', 'p99'],
              ]}
              change={setMetric}
            />
          }
        />
        {curve.lines.length > 0 ? (
          <Chart
            title="Response time by percentile"
            {...curve}
            format={latency}
            place={percentileAt}
            axis="Percentile"
            log
            height={240}
          />
        ) : (
          <p class="meta">No percentiles are known of these runs.</p>
        )}
      </div>
      {left > 0 && <small>{count(left)} further runs are in the numbers, and not drawn.</small>}
    </Panel>
  );
}
