/** A work over time. */

import { useMemo, useState } from 'preact/hooks';
import type { LiveOperation, LiveSecond } from '../../api';
import { clock, latency, short } from '../../lib/format';
import { Chart } from '../../parts/chart';
import { Choice } from '../../parts/choice';
import { type Buffer, lines, sum, type WorkSeconds } from './buffer';
import { labels, lineOf } from './labels';

interface Props {
  buffer: Buffer;
  work: WorkSeconds;
  span: number;
  /** Changes when the seconds do, which are changed in place. */
  turn: number;
}

const percentiles = [
  ['p50', (of: LiveOperation) => of.p50_us],
  ['p95', (of: LiveOperation) => of.p95_us],
  ['p99', (of: LiveOperation) => of.p99_us],
] as const;

/** A latency of nothing is none. */
const when = (of: LiveOperation | undefined, value: (of: LiveOperation) => number) =>
  of && of.ok > 0 ? value(of) : null;

export function Charts({ buffer, work, span, turn }: Props) {
  const names = labels(buffer, work);
  const [log, setLog] = useState<'linear' | 'log'>('log');
  const [of, setOf] = useState('0');
  const chosen = Math.min(Number(of), names.length - 1);
  const key = `${work.stage}/${work.work}/${span}/${turn}`;
  const perOperation = (value: (of: LiveOperation) => number) =>
    names.map(
      (_, index) => (second: LiveSecond) => (second.operations[index] ? value(second.operations[index]) : null),
    );
  const rates = useMemo(
    () =>
      lines(
        work,
        span,
        perOperation((of) => of.ok),
      ),
    [key],
  );
  const errors = useMemo(
    () =>
      lines(
        work,
        span,
        perOperation((of) => of.failed),
      ),
    [key],
  );
  const times = useMemo(
    () =>
      lines(
        work,
        span,
        percentiles.map(
          ([, value]) =>
            (second) =>
              when(second.operations[chosen], value),
        ),
      ),
    [key, chosen],
  );
  const flight = useMemo(() => lines(work, span, [(second) => second.in_flight, (second) => second.backlog]), [key]);
  const width = useMemo(() => lines(work, span, [(second) => sum(second.operations, 'bytes') / 1e6]), [key]);
  const same = { place: clock, axis: 'Time', together: 'live' };
  const perName = names.map(lineOf);
  return (
    <div class="charts live">
      <Chart title="Throughput, op/s" lines={perName} data={rates} format={short} {...same} />
      <Chart
        title={`Latency of ${names[chosen] ?? ''}`}
        lines={percentiles.map(([name], index) => lineOf(name, index))}
        data={times}
        format={latency}
        log={log === 'log'}
        aside={
          <>
            {names.length > 1 && (
              <Choice
                label="Operation"
                value={String(chosen)}
                options={names.map((name, index) => [String(index), name])}
                change={setOf}
              />
            )}
            <Choice
              label="Scale"
              value={log}
              options={[
                ['linear', 'Linear'],
                ['log', 'Log'],
              ]}
              change={setLog}
            />
          </>
        }
        {...same}
      />
      <Chart
        title="Bandwidth, MB/s"
        lines={[lineOf('all operations', 0)]}
        data={width}
        format={short}
        height={150}
        {...same}
      />
      <Chart title="Errors per second" lines={perName} data={errors} format={short} height={150} {...same} />
      <Chart
        title="In flight and backlog"
        lines={[lineOf('in flight', 0), lineOf('backlog (due, not sent)', 1)]}
        data={flight}
        format={short}
        height={150}
        {...same}
      />
    </div>
  );
}
