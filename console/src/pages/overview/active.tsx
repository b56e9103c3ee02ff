/** What goes on: one card for each submission, with its progress and how its load went lately. */

import { useEffect, useState } from 'preact/hooks';
import type { LiveSecond, Submission } from '../../api';
import * as client from '../../client';
import { rate } from '../../lib/format';
import { left } from '../../lib/left';
import { Progress } from '../../parts/bar';
import { Panel } from '../../parts/panel';
import { Spark } from '../../parts/spark';

export function Active({ active }: { active: Submission[] }) {
  return (
    <Panel title="Running" flush>
      {active.length === 0 ? (
        <p class="empty">Nothing runs at the moment.</p>
      ) : (
        <ul class="active">
          {active.map((submission) => (
            <Card key={submission.id} submission={submission} />
          ))}
        </ul>
      )}
    </Panel>
  );
}

function Card({ submission }: { submission: Submission }) {
  const { id, name, progress, stage, drivers, by } = submission;
  const rates = useRates(submission);
  const latest = rates[rates.length - 1];
  return (
    <li>
      <a class="title" href={`/w/${id}`}>
        {name}
      </a>
      <small>
        {id} · {submission.format}
        {by && ` · by ${by}`}
      </small>
      <Progress share={progress} label={`Progress of ${name}`} />
      <div class="row spread">
        <span>{stage ? `Stage ${stage}` : 'Getting ready'}</span>
        <small>{left(submission)}</small>
      </div>
      {rates.length > 1 && latest !== undefined ? (
        <div class="went">
          <Spark values={rates} label={`Throughput of ${name} lately, now ${rate(latest)}`} height={32} />
          <strong>{rate(latest)}</strong>
        </div>
      ) : (
        <small>Open it to see its load</small>
      )}
      <small>
        {drivers.length === 0 ? 'This controller' : drivers.length === 1 ? drivers[0] : `${drivers.length} drivers`}
      </small>
    </li>
  );
}

/** Seconds that the line shows. */
const shown = 90;
/** Where the overview has no rates, a submission is looked at so often, milliseconds: its page follows every second. */
const interval = 10_000;
/** With more drivers, all that is live is too much for a small line. */
const mostDrivers = 8;

/** Successful operations per second of a running submission, the latest last. */
function useRates({ id, rates: told, drivers }: Submission): number[] {
  const [rates, set] = useState<number[]>([]);
  const ask = told === undefined && drivers.length <= mostDrivers;
  useEffect(() => {
    if (!ask) return;
    let wanted = true;
    const look = () => {
      if (document.hidden) return;
      client.live(id).then(
        (live) => wanted && set(perSecond(live.seconds)),
        () => undefined,
      );
    };
    look();
    const timer = setInterval(look, interval);
    return () => {
      wanted = false;
      clearInterval(timer);
    };
  }, [id, ask]);
  return told ?? rates;
}

/** All works together, by the second in which they were told. */
function perSecond(seconds: LiveSecond[]): number[] {
  const sums = new Map<number, number>();
  for (const second of seconds) {
    const at = Math.round(second.unix_ms / 1000);
    const ok = second.operations.reduce((sum, operation) => sum + operation.ok, 0);
    sums.set(at, (sums.get(at) ?? 0) + ok);
  }
  return [...sums.entries()]
    .sort(([a], [b]) => a - b)
    .slice(-shown)
    .map(([, ok]) => ok);
}
