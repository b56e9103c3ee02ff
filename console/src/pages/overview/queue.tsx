/** What waits, in its order: moved by buttons, by Alt with the arrow keys, or by dragging; cancelled after a question. */

import { useEffect, useRef, useState } from 'preact/hooks';
import type { Submission } from '../../api';
import * as client from '../../client';
import { announce } from '../../lib/announce';
import { duration } from '../../lib/format';
import { move } from '../../lib/order';
import { useOperator } from '../../lib/session';
import { Confirm, useAction } from '../../parts/action';
import { Moment } from '../../parts/moment';
import { Notice } from '../../parts/notice';
import { Panel } from '../../parts/panel';

export function Queue({ queue, changed }: { queue: Submission[]; changed: () => void }) {
  const operator = useOperator();
  const { busy, error, act } = useAction();
  const [asking, ask] = useState<number>();
  const [dragged, drag] = useState<number>();
  const focus = useRef<number | undefined>(undefined);
  const list = useRef<HTMLOListElement>(null);

  // The row that was moved keeps the focus at its new place.
  useEffect(() => {
    if (focus.current === undefined) return;
    list.current?.querySelector<HTMLElement>(`[data-id="${focus.current}"]`)?.focus();
    focus.current = undefined;
  }, [queue]);

  const put = (submission: Submission, to: number, keepFocus: boolean) => {
    const what = move(queue, submission.id, to);
    if (!what || busy) return;
    act(async () => {
      await client.change(submission.id, what);
      if (keepFocus) focus.current = submission.id;
      announce(`${submission.name} moved to position ${to + 1} of ${queue.length}.`);
      changed();
    });
  };
  const stop = (submission: Submission) =>
    act(async () => {
      await client.cancel(submission.id, false);
      announce(`${submission.name} was cancelled.`);
      changed();
    });

  return (
    <Panel title="Queue" flush aside={<small>{operator && queue.length > 1 && 'Alt+↑/↓ moves a row'}</small>}>
      {error && <Notice tone="bad">{error.message}</Notice>}
      {queue.length === 0 && <p class="empty">The queue is empty.</p>}
      <ol class="queue" ref={list}>
        {queue.map((submission, index) => (
          <li
            key={submission.id}
            data-id={submission.id}
            tabIndex={operator ? 0 : undefined}
            class={dragged === submission.id ? 'dragged' : ''}
            draggable={operator}
            onDragStart={() => drag(submission.id)}
            onDragEnd={() => drag(undefined)}
            onDragOver={(event) => dragged !== undefined && event.preventDefault()}
            onDrop={() => {
              const from = queue.find((one) => one.id === dragged);
              if (from) put(from, index, false);
            }}
            onKeyDown={(event) => {
              if (!operator || !event.altKey || (event.key !== 'ArrowUp' && event.key !== 'ArrowDown')) return;
              event.preventDefault();
              put(submission, index + (event.key === 'ArrowUp' ? -1 : 1), true);
            }}
          >
            <span class="place">{index + 1}</span>
            <span class="what">
              <a href={`/w/${submission.id}`}>{submission.name}</a>
              <small>
                {submission.operations || submission.format}
                {submission.expected_ms !== null && ` · ${duration(submission.expected_ms)}`}
                {submission.by && ` · ${submission.by}`} · <Moment at={submission.submitted_unix_ms} />
              </small>
              {submission.reason && <small class="warn">{submission.reason}</small>}
            </span>
            <span class="priority" title="Higher priorities start first">
              <small>priority</small> {submission.priority}
            </span>
            {operator && (
              <span class="row tools">
                <Tool
                  words={`Move ${submission.name} up`}
                  mark="↑"
                  off={index === 0}
                  act={() => put(submission, index - 1, false)}
                />
                <Tool
                  words={`Move ${submission.name} down`}
                  mark="↓"
                  off={index + 1 === queue.length}
                  act={() => put(submission, index + 1, false)}
                />
                <Tool words={`Cancel ${submission.name}`} mark="✕" act={() => ask(submission.id)} />
              </span>
            )}
            {asking === submission.id && (
              <Confirm
                question={`Cancel “${submission.name}”? It has not started.`}
                answers={[{ words: 'Cancel submission', danger: true, act: () => stop(submission) }]}
                keep="Keep it queued"
                close={() => ask(undefined)}
              />
            )}
          </li>
        ))}
      </ol>
    </Panel>
  );
}

function Tool({ words, mark, act, off }: { words: string; mark: string; act: () => void; off?: boolean }) {
  return (
    <button class="small icon" aria-label={words} title={words} disabled={off} onClick={act}>
      <span aria-hidden="true">{mark}</span>
    </button>
  );
}
