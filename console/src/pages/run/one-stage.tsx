/** A page for one stage of a run: its numbers, findings and figures alone. */

import type { Finding } from '../../api';
import * as client from '../../client';
import { useResource } from '../../lib/resource';
import { Failure } from '../../parts/notice';
import type { PageProps } from '../../routes';
import { Figures } from './figures';
import { Findings } from './findings';
import { Stage } from './stage';
import './run.css';

export function StagePage({ id, address }: PageProps) {
  const number = Number(address.pathname.split('/')[4] ?? 0);
  const { data: run, error, reload } = useResource(`run ${id}`, () => client.run(id));
  if (error) return <Failure error={error} again={reload} />;
  if (!run) return <p class="meta">Loading…</p>;
  const stage = run.stages[number - 1];
  if (!stage)
    return <Failure error={new Error(`Run ${id} has ${run.stages.length} stages, and no stage ${number}.`)} />;
  const own = (finding: Finding) => finding.stage === stage.id || finding.stages.includes(stage.id);
  const findings = run.findings.filter(own);
  const beside = (to: number, words: string) => {
    const other = run.stages[to - 1];
    return (
      other && (
        <a class="button small" href={`/runs/${id}/stages/${to}`}>
          {words} {other.name || other.id}
        </a>
      )
    );
  };
  return (
    <>
      <div class="page-head">
        <h1>{stage.name || stage.id}</h1>
        <p class="meta">
          Stage {number} of {run.stages.length} of{' '}
          <a href={`/runs/${id}`}>
            run {id}, {run.name}
          </a>
        </p>
        <span class="actions row">
          {beside(number - 1, '←')}
          {beside(number + 1, '→')}
        </span>
      </div>
      <Stage stage={stage} drivers={run.drivers} />
      {findings.length > 0 && <Findings findings={findings} causes={null} />}
      <Figures run={id} stage={stage.id} />
    </>
  );
}
