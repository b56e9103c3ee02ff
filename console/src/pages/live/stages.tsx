/** Progress and remaining time of the stages. */

import type { LiveStage } from '../../api';
import { count, duration, plural } from '../../lib/format';
import { Progress } from '../../parts/bar';
import { State } from '../../parts/badge';
import { Panel } from '../../parts/panel';

/** How far a stage is: by its operations where they are counted, by its time otherwise. */
export function progress(stage: LiveStage, now: number): number | null {
  if (stage.state === 'completed') return 1;
  if (stage.state === 'waiting') return 0;
  if (stage.expected_operations) return Math.min(1, stage.operations / stage.expected_operations);
  if (!stage.expected_ms || stage.started_unix_ms === null) return null;
  return Math.min(1, ((stage.ended_unix_ms ?? now) - stage.started_unix_ms) / stage.expected_ms);
}

function time(stage: LiveStage, now: number): string {
  const { started_unix_ms: started, ended_unix_ms: ended, expected_ms: expected } = stage;
  if (started === null) return expected === null ? '' : `takes about ${duration(expected)}`;
  if (ended !== null) return `took ${duration(ended - started)}`;
  if (expected !== null) {
    const rest = expected - (now - started);
    return rest > 1000 ? `about ${duration(rest)} left` : 'nearly done';
  }
  const share = progress(stage, now);
  return share
    ? `about ${duration(((now - started) * (1 - share)) / share)} left`
    : `${duration(Math.max(0, now - started))} elapsed`;
}

/** `run`: where the pages of the stages that have ended are found. */
export function Stages({ stages, run }: { stages: LiveStage[]; run: number | null }) {
  const now = Date.now();
  return (
    <Panel title="Stages" flush>
      {stages.length === 0 && <p class="empty">No stages yet.</p>}
      <ol class="stages">
        {stages.map((stage, index) => (
          <li key={stage.id} class={stage.state}>
            <span class="row">
              <strong>
                {run !== null && stage.ended_unix_ms !== null ? (
                  <a href={`/runs/${run}/stages/${index + 1}`}>{stage.name || stage.id}</a>
                ) : (
                  stage.name || stage.id
                )}
              </strong>
              <State state={stage.state} />
            </span>
            <Progress share={progress(stage, now)} label={`Progress of ${stage.name || stage.id}`} />
            <small>
              {time(stage, now)}
              {stage.operations > 0 && ` · ${count(stage.operations)}`}
              {stage.operations > 0 && stage.expected_operations !== null && ` of ${count(stage.expected_operations)}`}
              {stage.operations > 0 && ' operations'}
            </small>
            {stage.works.length > 1 && <small>{plural(stage.works.length, 'work')} in parallel</small>}
            {stage.reason && <small class="bad">{stage.reason}</small>}
          </li>
        ))}
      </ol>
    </Panel>
  );
}
