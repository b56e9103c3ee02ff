/** What an operator can do with a submission: cancel it, or submit it again. */

import { useState } from 'preact/hooks';
import type { Submission } from '../../api';
import * as client from '../../client';
import { announce } from '../../lib/announce';
import { go } from '../../lib/router';
import { useOperator } from '../../lib/session';
import { Confirm, useAction } from '../../parts/action';
import { Notice } from '../../parts/notice';

export function Actions({ submission, changed }: { submission: Submission; changed: () => void }) {
  const operator = useOperator();
  const [asking, ask] = useState(false);
  const { busy, error, act } = useAction();
  if (!operator) return null;
  const { id, name, state } = submission;
  const cancel = (atOnce: boolean) =>
    act(async () => {
      await client.cancel(id, atOnce);
      announce(`${name} is being cancelled.`);
      changed();
    });
  const again = () =>
    act(async () => {
      const next = await client.resubmit(id);
      announce(`${next.name} was submitted again.`);
      go(`/w/${next.id}`);
    });
  const open = state === 'queued' || state === 'running';
  return (
    <>
      <span class="actions row">
        <button disabled={busy} onClick={again}>
          Submit again
        </button>
        <a class="button" href={`/w/${id}/edit`}>
          Edit and submit again
        </a>
        {open && (
          <button class="danger" disabled={busy || asking} onClick={() => ask(true)}>
            Cancel…
          </button>
        )}
      </span>
      {asking && open && (
        <Confirm
          question={
            state === 'queued' ? (
              <>Cancel “{name}”? It has not started.</>
            ) : (
              <>
                Cancel “{name}”? <b>Finish and clean up</b> ends the load, keeps the results and runs the cleanup
                stages. <b>Stop at once</b> runs no cleanup: data stays on the storage.
              </>
            )
          }
          answers={
            state === 'queued'
              ? [{ words: 'Cancel submission', danger: true, act: () => cancel(false) }]
              : [
                  { words: 'Finish and clean up', act: () => cancel(false) },
                  { words: 'Stop at once', danger: true, act: () => cancel(true) },
                ]
          }
          keep={state === 'queued' ? 'Keep it queued' : 'Keep it running'}
          close={() => ask(false)}
        />
      )}
      {error && <Notice tone="bad">{error.message}</Notice>}
    </>
  );
}
