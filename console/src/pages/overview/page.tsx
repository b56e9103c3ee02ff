/** The overview: running submissions, the queue, recent results, drivers. Follows the controller's events. */

import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import type { Overview } from '../../api';
import * as client from '../../client';
import * as early from './early';
import { announce } from '../../lib/announce';
import { plural } from '../../lib/format';
import { useQuiet, useStream } from '../../lib/stream';
import { useOperator } from '../../lib/session';
import { Failure, Notice } from '../../parts/notice';
import { Active } from './active';
import { Drivers } from './drivers';
import { Queue } from './queue';
import { Recent } from './recent';
import { isNew, Start } from './start';
import './overview.css';

export function OverviewPage() {
  const [overview, set] = useState<Overview>();
  const [error, setError] = useState<Error>();
  const before = useRef<Overview | undefined>(undefined);
  const take = useCallback((now: Overview) => {
    tellChanges(before.current, now);
    before.current = now;
    set(now);
    setError(undefined);
  }, []);
  const load = useCallback(() => void client.overview().then(take, setError), []);
  useEffect(() => void (early.take() ?? client.overview()).then(take, setError), []);
  const stream = useStream({ overview: take, missed: load, opened: load });
  // Drivers that are there tell something every second; without any, a quiet controller is only idle.
  const talkative = overview?.drivers.some((one) => one.state === 'idle' || one.state === 'busy');
  const quiet = useQuiet(stream, talkative ? 15 : Infinity);
  const operator = useOperator();

  return (
    <>
      <div class="page-head">
        <h1>Overview</h1>
        {overview && (
          <p class="meta">
            {plural(overview.drivers.length, 'driver')} · {overview.active.length} running · {overview.queue.length}{' '}
            queued
          </p>
        )}
        {operator && (
          <span class="actions">
            <a class="button main" href="/submit">
              Submit a document
            </a>
          </span>
        )}
      </div>
      {error && <Failure error={error} again={load} />}
      {quiet > 0 && overview && (
        <Notice tone="warn">No updates from the controller for {quiet} s. The data shown may be out of date.</Notice>
      )}
      {overview?.troubles.map((trouble) => (
        <Notice key={trouble} tone="bad">
          {trouble}
        </Notice>
      ))}
      {overview && (
        <>
          {operator && isNew(overview) ? (
            <Start overview={overview} />
          ) : (
            <>
              <Active active={overview.active} />
              <div class="columns">
                <Queue queue={overview.queue} changed={load} />
                <Recent recent={overview.recent} />
              </div>
            </>
          )}
          {(overview.drivers.length > 0 || !isNew(overview) || !operator) && <Drivers drivers={overview.drivers} />}
        </>
      )}
    </>
  );
}

/** Says what began and what ended, and troubles; numbers that change every second are not news. */
function tellChanges(before: Overview | undefined, now: Overview): void {
  if (!before) return;
  const known = new Set(before.active.map((one) => one.id));
  const ended = new Set(before.recent.map((one) => one.id));
  const news = [
    ...now.active.filter((one) => !known.has(one.id)).map((one) => `${one.name} started.`),
    ...now.recent.filter((one) => !ended.has(one.id)).map((one) => `${one.name} ${one.state}.`),
    ...now.troubles.filter((trouble) => !before.troubles.includes(trouble)),
  ];
  if (news.length > 0) announce(news.join(' '));
}
