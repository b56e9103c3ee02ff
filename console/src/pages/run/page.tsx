/** A stored run: verdict, findings, numbers, figures, drivers, provenance. */

import { useState } from 'preact/hooks';
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
import type { RunRecord } from '../../api';
import type { PageProps } from '../../routes';
import { Figures } from './figures';
import { Findings } from './findings';
import { Provenance } from './provenance';
import { Stage } from './stage';
import './run.css';

const formats = [
  ['html', 'HTML report'],
  ['md', 'Markdown'],
  ['csv', 'CSV'],
  ['series-csv', 'CSV per second'],
  ['json', 'JSON'],
] as const;

export function RunPage({ id }: PageProps) {
  const { data: run, error, reload } = useResource(`run ${id}`, () => client.run(id));
  if (error) return <Failure error={error} again={reload} />;
  if (!run) return <p class="meta">Loading…</p>;
  const [main, others] = mainStages(run);
  return (
    <>
      <div class="page-head">
        <h1>{run.name}</h1>
        <State state={run.state} />
        <Valid valid={run.valid} />
        <Tools id={id} name={run.name} />
        <p class="meta">
          Run {run.id} · started <Moment at={Date.parse(run.started)} /> · took {duration(run.elapsed_ns / 1e6)}
          {run.provenance.targets.map((target) => (
            <span key={target}> · {target}</span>
          ))}
        </p>
        {run.description && <p>{run.description}</p>}
      </div>
      <nav class="row downloads" aria-label="Downloads">
        {formats.map(([format, words]) => (
          <a
            key={format}
            class="button small"
            href={client.runReport(id, format)}
            target={format === 'html' ? '_blank' : undefined}
            download={format === 'html' ? undefined : ''}
          >
            {words}
          </a>
        ))}
        <From id={id} />
      </nav>
      <Verdict run={run} />
      <Findings findings={run.findings} />
      {main.map((stage) => (
        <Stage key={stage.id} stage={stage} drivers={run.drivers} />
      ))}
      <Figures run={id} />
      {others.length > 0 && (
        <details class="others">
          <summary>Other stages: {others.map((stage) => stage.name || stage.id).join(', ')}</summary>
          {others.map((stage) => (
            <Stage key={stage.id} stage={stage} drivers={run.drivers} />
          ))}
        </details>
      )}
      <Provenance run={run} />
    </>
  );
}

const around = new Set(['init', 'prepare', 'precondition', 'cleanup', 'dispose', 'delay']);

/** Stages that measure, and those around them; where none measures, all are shown. */
function mainStages(run: RunRecord) {
  const main = run.stages.filter((stage) => stage.works.some((work) => !around.has(work.kind)));
  return main.length === 0
    ? ([run.stages, []] as const)
    : ([main, run.stages.filter((stage) => !main.includes(stage))] as const);
}

function Verdict({ run }: { run: RunRecord }) {
  if (run.valid) {
    return (
      <Notice tone="good">
        <strong>VALID</strong>: all validity checks passed.
      </Notice>
    );
  }
  return (
    <Notice tone="bad">
      <strong>INVALID</strong>: do not rely on these numbers.
      <ul>
        {run.invalid_reasons.map((reason) => (
          <li key={reason}>{reason}</li>
        ))}
      </ul>
    </Notice>
  );
}

/** The submission that it came from, which only the list knows. */
function From({ id }: { id: number }) {
  const { data } = useResource(`row ${id}`, () => client.runs(1, id + 1));
  const row = data?.find((row) => row.id === id);
  return (
    <>
      {row?.submission != null && <a href={`/w/${row.submission}`}>Submission w{row.submission}</a>}
      {row?.evaluation != null && <a href={`/evaluations/${row.evaluation}`}>Evaluation {row.evaluation}</a>}
    </>
  );
}

function Tools({ id, name }: { id: number; name: string }) {
  const operator = useOperator();
  const [asking, ask] = useState(false);
  const { busy, error, act } = useAction();
  if (!operator) return null;
  const remove = () =>
    act(async () => {
      await client.deleteRun(id);
      announce(`Run ${id} was deleted.`);
      go('/runs');
    });
  return (
    <>
      <span class="actions">
        <button class="danger" disabled={busy || asking} onClick={() => ask(true)}>
          Delete…
        </button>
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
