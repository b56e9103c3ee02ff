/** Submits the demo with one click, and goes to see it. */

import * as client from '../client';
import { demo } from '../document/demo';
import { announce } from '../lib/announce';
import { go } from '../lib/router';
import { useAction } from './action';

export function Demo({ main = false }: { main?: boolean }) {
  const { busy, error, act } = useAction();
  const run = () =>
    act(async () => {
      const submission = await client.submit({ document: demo });
      announce('The demo was submitted.');
      go(`/w/${submission.id}`);
    });
  return (
    <>
      <button type="button" class={main ? 'main' : 'small'} disabled={busy} onClick={run}>
        {busy ? 'Submitting…' : 'Run the demo'}
      </button>
      {error && <span class="bad">✕ {error.message}</span>}
    </>
  );
}
