/** A submission, from the queue to its report, on one page: what is live stays when the result has come. */

import { useEffect, useState } from 'preact/hooks';
import * as client from '../../client';
import { clock, duration } from '../../lib/format';
import { left } from '../../lib/left';
import { useResource } from '../../lib/resource';
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
import { Board } from './board';
import { type Buffer, liveliest, origin, reach, type WorkSeconds } from './buffer';
import { Charts } from './charts';
import { Happened } from './happened';
import { Shares } from './shares';
import { useFollow } from './follow';
import { away } from './marks';
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
      <Steps submission={submission} />
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
      {buffer?.board && <Board board={buffer.board} running={running} />}
      <Body submission={submission} buffer={buffer} />
      <Document id={id} />
    </>
  );
}

const steps = ['Queued', 'Running', 'Result'];

/** Where the submission is on its way. */
function Steps({ submission }: { submission: Submission }) {
  const at = submission.ended_unix_ms !== null ? 2 : submission.state === 'running' ? 1 : 0;
  return (
    <ol class="steps" aria-label="Progress of the submission">
      {steps.map((step, index) => (
        <li key={step} class={index < at ? 'past' : ''} aria-current={index === at ? 'step' : undefined}>
          {step}
        </li>
      ))}
    </ol>
  );
}

/** Why it waits, or why there is no result. */
function Outcome({ submission }: { submission: Submission }) {
  const { state, reason, run, evaluation, headline } = submission;
  if (state === 'running') return reason ? <Notice tone="note">{sentence(reason)}</Notice> : null;
  if (state === 'queued') return <Notice tone="note">Queued: {reason || 'waiting for its turn'}.</Notice>;
  // A result says itself whether it holds.
  if (state === 'completed' && run !== null && evaluation === null) return null;
  // A run's headline stands in its result.
  const verdict = evaluation === null ? '' : headline;
  if (!reason && !verdict) return null;
  return (
    <Notice tone={state === 'failed' ? 'bad' : state === 'completed' ? 'good' : 'warn'}>
      {verdict && <strong>{verdict} </strong>}
      {reason && <span>{sentence(reason)}</span>}
    </Notice>
  );
}

const sentence = (text: string) => `${text[0]?.toUpperCase() ?? ''}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`;

type Parts = typeof import('../run/result');
type Report = typeof import('../evaluations/report');

/** The result, once it has come: its parts, which are loaded then, and the run's record. */
function useResult({ run, evaluation, ended_unix_ms: ended }: Submission) {
  const [parts, setParts] = useState<Parts>();
  const [report, setReport] = useState<Report>();
  const wanted = ended !== null && evaluation === null ? run : null;
  useEffect(() => {
    if (ended !== null && evaluation !== null) void import('../evaluations/report').then(setReport);
    if (wanted !== null) void import('../run/result').then(setParts);
  }, [wanted, evaluation, ended]);
  const { data } = useResource(`result ${wanted}`, async () => (wanted === null ? undefined : client.run(wanted)));
  return { parts: data && parts ? { ...parts, record: data } : undefined, report };
}

/** The page below its head: what was live stands between what is read of the result first and the rest of it. */
function Body({ submission, buffer }: { submission: Submission; buffer: Buffer | undefined }) {
  const { parts, report } = useResult(submission);
  const { evaluation } = submission;
  return (
    <>
      {parts && (
        <section aria-label="Result">
          <h2 class="result-head">
            Result <a href={`/runs/${parts.record.id}`}>Run {parts.record.id}</a>
          </h2>
          <parts.Downloads id={parts.record.id} />
          <parts.Lead run={parts.record} />
        </section>
      )}
      {report && evaluation !== null && <report.EvaluationResult id={evaluation} />}
      {buffer && <LiveData buffer={buffer} submission={submission} />}
      {parts && <parts.Rest run={parts.record} />}
    </>
  );
}

const spans = [
  ['60', '1 min'],
  ['300', '5 min'],
  ['900', '15 min'],
  ['0', 'Whole run'],
] as const;

const key = (one: WorkSeconds) => `${one.stage}/${one.work}`;

function LiveData({ buffer, submission }: { buffer: Buffer; submission: Submission }) {
  const running = submission.state === 'running';
  const [chosen, choose] = useState('');
  const [span, setSpan] = useState<(typeof spans)[number][0]>('0');
  const [zoom, setZoom] = useState<[number, number] | null>(null);
  const works = buffer.works.slice().sort((a, b) => a.stage - b.stage || a.work - b.work);
  const one = works.find((work) => key(work) === chosen);
  const shown = one ? [one] : works;
  const latest = one ?? liveliest(buffer);
  const [first, last] = reach(buffer, shown);
  const range = [span === '0' ? first : Math.max(first, last - Number(span) + 1), last] as const;
  const begun = origin(buffer);
  const gone = away(buffer, latest);
  // Of an evaluation, only one run at a time is here.
  const whole = !buffer.board ? 'the whole run' : running ? 'the run under way' : 'the last run';
  const names = works.map((work) => [key(work), workName(buffer, work)] as const);
  return (
    <>
      {latest && running && <Tiles buffer={buffer} work={latest} drivers={submission.drivers.length} away={gone} />}
      <Stages stages={buffer.stages} run={submission.run} />
      {latest && (
        <>
          <Panel
            title={`${running ? 'Live' : 'As it went'}: ${one ? workName(buffer, one) : whole}`}
            aside={
              <span class="row end">
                {zoom && (
                  <button class="small" onClick={() => setZoom(null)}>
                    Show all of {clock(zoom[0])} to {clock(zoom[1])} again
                  </button>
                )}
                {names.length > 1 && (
                  <Pick label="Show" value={chosen} options={[['', 'whole run'], ...names]} change={choose} />
                )}
                <Choice label="Time range" value={span} options={spans} change={setSpan} />
              </span>
            }
          >
            <Charts buffer={buffer} works={shown} range={range} zoom={zoom} onZoom={setZoom} turn={buffer.turn} />
            <Happened marks={buffer.marks} begun={begun} />
          </Panel>
          {running && <Now buffer={buffer} work={latest} />}
          <Shares
            work={latest}
            all={submission.drivers}
            away={gone}
            span={span === '0' ? Infinity : Number(span)}
            turn={buffer.turn}
          />
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
