/** An evaluation: its verdict and its own report, framed. */

import * as client from '../../client';
import { plural } from '../../lib/format';
import { useResource } from '../../lib/resource';
import { State, Valid } from '../../parts/badge';
import { Moment } from '../../parts/moment';
import { Failure } from '../../parts/notice';
import type { PageProps } from '../../routes';
import './evaluations.css';

const formats = [
  ['md', 'Markdown'],
  ['csv', 'CSV'],
  ['json', 'JSON'],
] as const;

export function EvaluationPage({ id }: PageProps) {
  const { data, error, reload } = useResource('evaluations', client.evaluations);
  const one = data?.find((one) => one.id === id);
  const report = client.evaluationReport(id, 'html');
  return (
    <>
      <div class="page-head">
        <h1>{one?.name ?? `Evaluation ${id}`}</h1>
        {one && (
          <>
            <State state={one.state} />
            <Valid valid={one.valid} />
          </>
        )}
        <span class="actions row">
          <a class="button small" href={report} target="_blank">
            Open report in a new tab
          </a>
          {formats.map(([format, words]) => (
            <a key={format} class="button small" href={client.evaluationReport(id, format)} download="">
              {words}
            </a>
          ))}
        </span>
        {one && (
          <p class="meta">
            Evaluation {id} · started <Moment at={one.started_unix_ms} /> · {plural(one.runs, 'run')}
          </p>
        )}
        {one?.headline && <p>{one.headline}</p>}
      </div>
      {error && <Failure error={error} again={reload} />}
      {data && !one && <Failure error={new Error(`There is no evaluation ${id}.`)} />}
      {one && <iframe class="report" src={report} title={`Report of evaluation ${id}`} sandbox="allow-popups" />}
    </>
  );
}
