/** A run over time: all of it, or one of its works. */

import { useMemo, useState } from 'preact/hooks';
import type { LiveOperation } from '../../api';
import { clock, latency, short } from '../../lib/format';
import { Chart } from '../../parts/chart';
import { Choice } from '../../parts/choice';
import { type Buffer, lines, sum, type Told, type WorkSeconds } from './buffer';
import { labels, lineOf } from './labels';
import { bands, marks } from './marks';

interface Props {
  buffer: Buffer;
  works: readonly WorkSeconds[];
  /** The seconds of the run that there is room for. */
  range: readonly [number, number];
  zoom: readonly [number, number] | null;
  onZoom: (zoom: [number, number] | null) => void;
  /** Changes when the seconds do, which are changed in place. */
  turn: number;
}

const percentiles = [
  ['p50', (of: LiveOperation) => of.p50_us],
  ['p95', (of: LiveOperation) => of.p95_us],
  ['p99', (of: LiveOperation) => of.p99_us],
] as const;

/** What is done before and after a load, by its usual names. */
const around = new Set(['init', 'prepare', 'precondition', 'cleanup', 'dispose']);

export function Charts({ buffer, works, range, zoom, onZoom, turn }: Props) {
  const [log, setLog] = useState<'linear' | 'log'>('log');
  const [of, setOf] = useState('');
  const known = new Map(works.map((work) => [work, labels(buffer, work)]));
  // What is measured has the first colours.
  const all = [...new Set([...known.values()].flat())];
  const names = [...all.filter((name) => !around.has(name)), ...all.filter((name) => around.has(name))];
  const chosen = names.includes(of) ? of : busiest(works, known);
  const key = `${works.map((work) => `${work.stage}/${work.work}`).join()}/${range.join()}/${turn}`;
  /** The operations of this name in one second. */
  const named = (told: readonly Told[], name: string) =>
    told.flatMap(({ work, second }) => second.operations.filter((_, at) => known.get(work)?.[at] === name));
  const perName = (field: 'ok' | 'failed') =>
    names.map((name) => (told: readonly Told[]) => {
      const found = named(told, name);
      return found.length > 0 ? sum(found, field) : null;
    });
  const over = (values: Parameters<typeof lines>[3]) => lines(buffer, works, range, values);
  const unmeasured = (told: readonly Told[]) => told.reduce((sum, { second }) => sum + second.unmeasured, 0) || null;
  const drawn = useMemo(
    () => ({
      rates: over([...perName('ok'), unmeasured]),
      errors: over(perName('failed')),
      // Percentiles of several works cannot be put together: the worst is shown. A latency of nothing is none.
      times: over(
        percentiles.map(([, value]) => (told) => {
          const found = named(told, chosen).filter((of) => of.ok > 0);
          return found.length > 0 ? Math.max(...found.map(value)) : null;
        }),
      ),
      flight: over([
        (told) => told.reduce((sum, { second }) => sum + second.in_flight, 0),
        (told) => told.reduce((sum, { second }) => sum + second.backlog, 0),
      ]),
      width: over([(told) => told.reduce((all, { second }) => all + sum(second.operations, 'bytes'), 0) / 1e6]),
      marks: marks(buffer),
      bands: bands(buffer, works),
    }),
    [key, chosen],
  );
  const same = {
    place: clock,
    axis: 'Time',
    together: 'live',
    marks: drawn.marks,
    bands: drawn.bands,
    zoom: zoom ?? range,
    onZoom,
  };
  const shown = names.map(lineOf);
  return (
    <div class="charts live">
      <Chart
        title="Throughput, op/s"
        lines={[...shown, { name: 'outside the window', colour: '--muted', dash: [1, 3] }]}
        data={drawn.rates}
        format={short}
        {...same}
      />
      <Chart
        title={`Latency of ${chosen}`}
        lines={percentiles.map(([name], index) => lineOf(name, index))}
        data={drawn.times}
        format={latency}
        log={log === 'log'}
        aside={
          <>
            {names.length > 1 && (
              <select aria-label="Operation" value={chosen} onChange={(event) => setOf(event.currentTarget.value)}>
                {names.map((name) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
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
        data={drawn.width}
        format={short}
        height={150}
        {...same}
      />
      <Chart title="Errors per second" lines={shown} data={drawn.errors} format={short} height={150} {...same} />
      <Chart
        title="In flight and backlog"
        lines={[lineOf('in flight', 0), lineOf('backlog (due, not sent)', 1)]}
        data={drawn.flight}
        format={short}
        height={150}
        {...same}
      />
    </div>
  );
}

/** The operation that a viewer wants to see first: the most frequent one of the work with the most seconds. */
function busiest(works: readonly WorkSeconds[], known: Map<WorkSeconds, string[]>): string {
  const longest = works.slice().sort((a, b) => b.seconds.length - a.seconds.length)[0];
  if (!longest) return '';
  const done = (known.get(longest) ?? []).map((name, at) => ({
    name,
    ok: longest.seconds.reduce((sum, second) => sum + (second.operations[at]?.ok ?? 0), 0),
  }));
  return done.sort((a, b) => b.ok - a.ok)[0]?.name ?? '';
}
