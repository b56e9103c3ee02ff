/** Logs in by the login address that this page was opened by, and asks first where its user may not have wanted that. */

import { useEffect, useState } from 'preact/hooks';
import type { Info, Owner } from './api';
import * as client from './client';
import type { Entry } from './lib/entry';
import { key } from './lib/key';
import { useAction } from './parts/action';
import { Notice } from './parts/notice';

interface Question {
  /** Whom the address logs in. */
  owner: Owner;
  /** Who is logged in already. */
  current: Info | undefined;
}

export function Enter({ entry, done }: { entry: Entry; done: (error?: Error) => void }) {
  const [question, ask] = useState<Question>();
  const { busy, error, act } = useAction();
  const login = { code: entry.code };
  const look = async () => {
    const owner = await client.owner(login);
    const current = key() === null ? undefined : await client.info().catch(() => undefined);
    const other = current && (current.user !== owner.user || current.role !== owner.role);
    if (entry.confirm || other) return ask({ owner, current });
    await client.logIn(login);
    done();
  };
  useEffect(() => {
    look().catch(done);
  }, []);
  if (!question) return null;
  const { owner, current } = question;
  const enter = () =>
    act(async () => {
      await client.logIn(login);
      done();
    });
  return (
    <main class="login">
      <div class="panel" role="alertdialog" aria-labelledby="enter-question" aria-describedby="enter-why">
        <div class="body">
          <p class="brand">
            <img src="/mark.svg" alt="" /> Tidemark
          </p>
          <h1 id="enter-question">Log in as {owner.user} at this controller?</h1>
          <div id="enter-why">
            <p>
              You opened a login address of <strong>{owner.user}</strong> ({owner.role}) at {location.host}
              {entry.confirm && ', possibly from a page of another site'}. Log in only if you know that it is yours.
            </p>
            {current && (
              <p>
                You are logged in as <strong>{current.user}</strong> ({current.role}). That session would end.
              </p>
            )}
          </div>
          {error && <Notice tone="bad">{error.message}</Notice>}
          <div class="row">
            <button autoFocus onClick={() => done()}>
              {current ? `Stay logged in as ${current.user}` : 'Do not log in'}
            </button>
            <button class="main" disabled={busy} onClick={enter}>
              Log in as {owner.user}
            </button>
          </div>
        </div>
      </div>
    </main>
  );
}
