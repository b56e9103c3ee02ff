/** Running submissions: one card each, with progress and recent throughput. */

import type { Submission } from '../../api';
import { rate } from '../../lib/format';
import { left } from '../../lib/left';
import { Progress } from '../../parts/bar';
import { Panel } from '../../parts/panel';
import { Spark } from '../../parts/spark';

export function Active({ active }: { active: Submission[] }) {
  return (
    <Panel title="Running" flush>
      {active.length === 0 ? (
        <p class="empty">Nothing is running.</p>
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
  const { id, name, progress, stage, drivers, by, rates } = submission;
  const latest = rates[rates.length - 1];
  return (
    <li>
      <a class="title" href={`/w/${id}`}>
        {name}
      </a>
      <small>
        w{id} · {submission.format}
        {by && ` · by ${by}`}
      </small>
      <Progress share={progress} label={`Progress of ${name}`} />
      <div class="row spread">
        <span>{stage ? `Stage ${stage}` : 'Preparing'}</span>
        <small>{left(submission)}</small>
      </div>
      {rates.length > 1 && latest !== undefined ? (
        <div class="went">
          <Spark values={rates} label={`Recent throughput of ${name}, now ${rate(latest)}`} height={32} />
          <strong>{rate(latest)}</strong>
        </div>
      ) : (
        <small>No operations yet</small>
      )}
      <small>
        {drivers.length === 0 ? 'This controller' : drivers.length === 1 ? drivers[0] : `${drivers.length} drivers`}
      </small>
    </li>
  );
}
