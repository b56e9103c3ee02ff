/** An evaluation: its verdict and its own report; while it goes on, where it can be watched. */

import * as client from '../../client';
import { plural } from '../../lib/format';
import { useResource } from '../../lib/resource';
import { State, Valid } from '../../parts/badge';
import { Moment } from '../../parts/moment';
import { Failure, Notice } from '../../parts/notice';
import type { PageProps } from '../../routes';
import { Forms, Report } from './report';

export function EvaluationPage({ id }: PageProps) {
  const { data, error, reload } = useResource('evaluations', client.evaluations);
  const { data: overview } = useResource('overview', client.overview);
  const one = data?.find((one) => one.id === id);
  const live = overview?.active.find((submission) => submission.evaluation === id);
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
          <Forms id={id} />
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
      {live && (
        <Notice tone="note">
          It is running: <a href={`/w/${live.id}`}>watch its board</a>. This is what it has come to so far.
        </Notice>
      )}
      {one && <Report id={id} />}
    </>
  );
}
