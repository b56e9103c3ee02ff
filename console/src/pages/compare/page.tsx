/** Two groups of runs beside each other. */

import { useState } from 'preact/hooks';
import type { ComparisonRow } from '../../api';
import * as client from '../../client';
import { latency, percent, rate } from '../../lib/format';
import { go } from '../../lib/router';
import { useResource } from '../../lib/resource';
import { State } from '../../parts/badge';
import { Figure } from '../../parts/figure';
import { Failure, Notice } from '../../parts/notice';
import { Panel } from '../../parts/panel';
import type { PageProps } from '../../routes';
import { Groups } from './groups';
import { Charts, Operations } from './operations';
import { parseMargin, parseRuns } from './parse';
import './compare.css';

export function ComparePage({ address }: PageProps) {
  const a = address.searchParams.get('a') ?? '';
  const b = address.searchParams.get('b') ?? '';
  const margin = parseMargin(address.searchParams.get('margin') ?? '') ?? '';
  const [one, other] = [parseRuns(a), parseRuns(b)];
  const asked = one && other && one.length > 0 && other.length > 0;
  return (
    <>
      <div class="page-head">
        <h1>Compare</h1>
        <p class="meta">
          Compares runs B with the baseline A. Confidence intervals need at least two runs on each side; with a margin,
          B can also be equal within it. <a href="/runs">Choose runs from the list</a>
        </p>
      </div>
      <Groups
        key={`${a} ${b} ${margin}`}
        {...{ a, b, margin }}
        compare={(a, b, margin) =>
          go(`/compare?a=${a.join(',')}&b=${b.join(',')}${margin ? `&margin=${encodeURIComponent(margin)}` : ''}`)
        }
      />
      {asked && <Result key={`result ${a} ${b} ${margin}`} a={one} b={other} margin={margin} />}
    </>
  );
}

function Result({ a, b, margin }: { a: number[]; b: number[]; margin: string }) {
  const { data, error, reload } = useResource(`${a} against ${b}`, () => client.compare(a, b, margin));
  const [drawn, setDrawn] = useState(true);
  if (error) return <Failure error={error} again={reload} />;
  if (!data) return <p class="meta">Comparing…</p>;
  const tones: Record<string, 'good' | 'bad'> = { better: 'good', worse: 'bad', 'equal within the margin': 'good' };
  const tone = data.comparable ? (tones[data.outcome] ?? 'note') : 'warn';
  return (
    <>
      <Notice tone={tone}>
        <strong>{data.sentence}</strong>
      </Notice>
      {data.invalid.length > 0 && (
        <Notice tone="warn">
          Do not rely on these numbers:
          <ul>
            {data.invalid.map((reason) => (
              <li key={reason}>{reason}</li>
            ))}
          </ul>
        </Notice>
      )}
      {data.rows.length > 0 && <Metrics rows={data.rows} margin={data.margin} />}
      {data.operations.length > 0 && <Operations operations={data.operations} />}
      {data.operations.length > 0 && <Charts operations={data.operations} />}
      {data.figures.length > 0 && (
        <Panel
          title="Figures"
          aside={
            <button class="small end" aria-expanded={drawn} onClick={() => setDrawn(!drawn)}>
              {drawn ? 'Hide' : 'Show'}
            </button>
          }
        >
          {drawn && (
            <div class="figures">
              {data.figures.map(([title, svg]) => (
                <figure key={title} aria-label={title}>
                  <Figure svg={svg} />
                </figure>
              ))}
            </div>
          )}
        </Panel>
      )}
    </>
  );
}

function Metrics({ rows, margin }: { rows: ComparisonRow[]; margin: number | null }) {
  return (
    <Panel title="Metrics" flush aside={margin !== null && <small class="end">margin: {percent(margin)}</small>}>
      <div class="scroll" tabIndex={0} role="region" aria-label="Metrics of both groups">
        <table>
          <thead>
            <tr>
              <th scope="col">Load</th>
              <th scope="col">Metric</th>
              <th scope="col" class="n">
                A
              </th>
              <th scope="col" class="n">
                B
              </th>
              <th scope="col" class="n">
                B ÷ A
              </th>
              <th scope="col" class="n">
                95 % interval
              </th>
              <th scope="col">Outcome</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row, index) => (
              <Row key={index} row={row} />
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function Row({ row }: { row: ComparisonRow }) {
  const format = row.unit === 'microseconds' ? latency : rate;
  const times = (ratio: number) => `${ratio.toFixed(3)}`;
  const plain = row.outcome === 'better' || row.outcome === 'worse';
  return (
    <tr>
      <td>{row.load}</td>
      <th scope="row">{row.metric}</th>
      <td class="n">{format(row.a)}</td>
      <td class="n">{format(row.b)}</td>
      <td class="n">{times(row.ratio)}</td>
      <td class="n">{row.interval ? `${times(row.interval[0])} to ${times(row.interval[1])}` : '–'}</td>
      <td>{plain ? <State state={row.outcome} /> : <small>{row.outcome}</small>}</td>
    </tr>
  );
}
