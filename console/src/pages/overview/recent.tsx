/** Submissions that ended recently. */

import type { Submission } from '../../api';
import { State, Valid } from '../../parts/badge';
import { Moment } from '../../parts/moment';
import { Panel } from '../../parts/panel';

export function Recent({ recent }: { recent: Submission[] }) {
  return (
    <Panel
      title="Recent results"
      flush
      aside={
        <a class="end" href="/runs">
          All runs
        </a>
      }
    >
      {recent.length === 0 ? (
        <p class="empty">No results yet. Submit a document to start.</p>
      ) : (
        <ul class="recent">
          {recent.map((one) => (
            <li key={one.id}>
              <div class="row">
                <a href={one.run !== null ? `/runs/${one.run}` : `/w/${one.id}`}>{one.name}</a>
                <State state={one.state} />
                {one.valid !== null && <Valid valid={one.valid} />}
                <small class="when">
                  <Moment at={one.ended_unix_ms} />
                </small>
              </div>
              <small class="headline">{one.headline || one.reason}</small>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}
