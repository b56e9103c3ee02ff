/** A stored run: where it came from, what can be done with it, and its result. */

import { useState } from 'preact/hooks';
import type { HistoryRow, RunRecord } from '../../api';
import * as client from '../../client';
import { announce } from '../../lib/announce';
import { duration } from '../../lib/format';
import { useResource } from '../../lib/resource';
import { go } from '../../lib/router';
import { useOperator } from '../../lib/session';
import { Confirm, useAction } from '../../parts/action';
import { State, Valid } from '../../parts/badge';
import { Moment } from '../../parts/moment';
import { Failure, Notice } from '../../parts/notice';
import type { PageProps } from '../../routes';
import { place } from '../runs/place';
import { Downloads, Lead, Rest } from './result';

export function RunPage({ id }: PageProps) {
  const { data: run, error, reload } = useResource(`run ${id}`, () => client.run(id));
  // What the list knows of it: its submission, and the run of this name before it.
  const { data: alike } = useResource(`alike ${id} ${run?.name ?? ''}`, async () =>
    run ? (await client.history({ text: run.name, limit: 200 })).rows : [],
  );
  if (error) return <Failure error={error} again={reload} />;
  if (!run) return <p class="meta">Loading…</p>;
  const row = alike?.find((row) => row.run === id);
  const before = alike?.find(
    (row) => row.run !== null && row.run < id && row.name === run.name && row.state === 'completed',
  );
  return (
    <>
      <div class="page-head">
        <h1>{run.name}</h1>
        <State state={run.state} />
        <Valid valid={run.valid} />
        <Tools run={run} row={row} before={before?.run ?? null} />
        <p class="meta">
          Run {run.id} · started <Moment at={Date.parse(run.started)} /> · took {duration(run.elapsed_ns / 1e6)}
          {run.provenance.targets.map((target) => (
            <span key={target}> · {target}</span>
          ))}
          {row?.submission != null && (
            <>
              {' '}
              · <a href={`/w/${row.submission}`}>Submission w{row.submission}</a>
            </>
          )}
          {row?.evaluation != null && (
            <>
              {' '}
              · <a href={`/evaluations/${row.evaluation}`}>Evaluation {row.evaluation}</a>: {place(row)}
            </>
          )}
        </p>
        {run.description && <p>{run.description}</p>}
      </div>
      <Downloads id={id} />
      <Lead run={run} />
      <Rest run={run} />
    </>
  );
}

interface ToolsProps {
  run: RunRecord;
  row: HistoryRow | undefined;
  /** The run of the same name before it. */
  before: number | null;
}

function Tools({ run: { id, name }, row, before }: ToolsProps) {
  const operator = useOperator();
  const [asking, ask] = useState(false);
  const { busy, error, act } = useAction();
  const remove = () =>
    act(async () => {
      await client.deleteRun(id);
      announce(`Run ${id} was deleted.`);
      go('/runs');
    });
  const submission = row?.submission ?? null;
  const again = (submission: number) =>
    act(async () => {
      const next = await client.resubmit(submission);
      announce(`${next.name} was submitted again.`);
      go(`/w/${next.id}`);
    });
  return (
    <>
      <span class="actions row">
        <a class="button" href={before === null ? `/runs?a=${id}` : `/compare?a=${before}&b=${id}`}>
          {before === null ? 'Compare…' : `Compare with run ${before}`}
        </a>
        {operator && submission !== null && (
          <>
            <button disabled={busy} onClick={() => again(submission)}>
              Submit again
            </button>
            <a class="button" href={`/w/${submission}/edit`}>
              Edit and submit again
            </a>
          </>
        )}
        {operator && (
          <button class="danger" disabled={busy || asking} onClick={() => ask(true)}>
            Delete…
          </button>
        )}
      </span>
      {asking && (
        <Confirm
          question={`Delete run ${id}, “${name}”, and its results? This cannot be undone.`}
          answers={[{ words: 'Delete run', danger: true, act: remove }]}
          keep="Keep it"
          close={() => ask(false)}
        />
      )}
      {error && <Notice tone="bad">{error.message}</Notice>}
    </>
  );
}
