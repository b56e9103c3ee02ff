/** A submission: live data while it runs, its outcome afterwards. */

import { useMemo, useState } from 'preact/hooks';
import { duration } from '../../lib/format';
import { left } from '../../lib/left';
import { Progress } from '../../parts/bar';
import { Choice } from '../../parts/choice';
import { State, Valid } from '../../parts/badge';
import { Failure, Notice } from '../../parts/notice';
import { Panel } from '../../parts/panel';
import { Pick } from '../../parts/filter';
import { Moment } from '../../parts/moment';
import type { PageProps } from '../../routes';
import type { Submission } from '../../api';
import { Actions } from './actions';
import { type Buffer, liveliest, type WorkSeconds } from './buffer';
import { Charts } from './charts';
import { Shares } from './shares';
import { useFollow } from './follow';
import { Nodes } from './nodes';
import { Now } from './now';
import { Stages } from './stages';
import { Tiles } from './tiles';
import { Document } from './document';
import './live.css';

export function LivePage({ id }: PageProps) {
  const { submission, buffer, error, quiet, reload } = useFollow(id);
  if (!submission) return error ? <Failure error={error} again={reload} /> : <p class="meta">Loading…</p>;
  const running = submission.state === 'running';
  return (
    <>
      <div class="page-head">
        <h1>{submission.name}</h1>
        <State state={submission.state} />
        {submission.valid !== null && <Valid valid={submission.valid} />}
        <Actions submission={submission} changed={reload} />
        <p class="meta">
          Submission w{submission.id} · {submission.format}
          {submission.by && ` · by ${submission.by}`} · submitted <Moment at={submission.submitted_unix_ms} />
          {submission.started_unix_ms !== null && (
            <>
              {' '}
              · started <Moment at={submission.started_unix_ms} />
            </>
          )}
          {submission.started_unix_ms !== null && submission.ended_unix_ms !== null && (
            <> · took {duration(submission.ended_unix_ms - submission.started_unix_ms)}</>
          )}
        </p>
      </div>
      {running && (
        <div class="whole">
          <Progress share={submission.progress} label={`Progress of ${submission.name}`} />
          <small>{left(submission)}</small>
        </div>
      )}
      <Outcome submission={submission} />
      {running && quiet > 0 && (
        <Notice tone="warn">
          No updates for {quiet} s. The data shown is out of date; updates resume when the controller responds.
        </Notice>
      )}
      {buffer?.troubles.map((trouble) => (
        <Notice key={trouble} tone="warn">
          {trouble}
        </Notice>
      ))}
      {buffer && <LiveData buffer={buffer} running={running} />}
      <Document id={id} />
    </>
  );
}

/** The outcome, and a link to it. */
function Outcome({ submission }: { submission: Submission }) {
  const { state, reason, run, evaluation, headline } = submission;
  if (state === 'running') return null;
  if (state === 'queued') return <Notice tone="note">Queued: {reason || 'waiting for its turn'}.</Notice>;
  return (
    <Notice tone={state === 'failed' ? 'bad' : state === 'completed' ? 'good' : 'warn'}>
      {headline && <strong>{headline} </strong>}
      {reason && <span>{reason} </span>}
      {evaluation !== null && <a href={`/evaluations/${evaluation}`}>Evaluation {evaluation}</a>}
      {evaluation === null && run !== null && <a href={`/runs/${run}`}>Run {run}: verdict, numbers and figures</a>}
    </Notice>
  );
}

const spans = [
  ['60', '1 min'],
  ['300', '5 min'],
  ['900', '15 min'],
  ['3600', '1 h'],
] as const;

function LiveData({ buffer, running }: { buffer: Buffer; running: boolean }) {
  const [chosen, choose] = useState('');
  const [span, setSpan] = useState<(typeof spans)[number][0]>('300');
  const key = (one: WorkSeconds) => `${one.stage}/${one.work}`;
  const work = buffer.works.find((one) => key(one) === chosen) ?? liveliest(buffer);
  const names = useMemo(
    () =>
      buffer.works
        .slice()
        .sort((a, b) => a.stage - b.stage || a.work - b.work)
        .map((one) => [key(one), workName(buffer, one)] as const),
    [buffer.works.length, buffer.stages],
  );
  return (
    <>
      {work && running && <Tiles buffer={buffer} work={work} />}
      <Stages stages={buffer.stages} />
      {work && (
        <>
          <Panel
            title={`Live: ${workName(buffer, work)}`}
            aside={
              <span class="row end">
                {names.length > 1 && <Pick label="Work" value={key(work)} options={names} change={choose} />}
                <Choice label="Time range" value={span} options={spans} change={setSpan} />
              </span>
            }
          >
            <Charts buffer={buffer} work={work} span={Number(span)} turn={buffer.turn} />
          </Panel>
          {running && <Now buffer={buffer} work={work} />}
          <Shares work={work} span={Number(span)} turn={buffer.turn} />
        </>
      )}
      <Nodes nodes={buffer.nodes} />
    </>
  );
}

function workName(buffer: Buffer, { stage, work }: WorkSeconds): string {
  const of = buffer.stages[stage];
  const name = of?.works[work]?.name ?? `work ${work + 1}`;
  const stageName = of?.name ?? `stage ${stage + 1}`;
  return (of?.works.length ?? 0) > 1 ? `${stageName} / ${name}` : stageName;
}
