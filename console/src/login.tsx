/** Asks for a token where the controller wants one. */

import { useId, useState } from 'preact/hooks';
import * as client from './client';
import { useAction } from './parts/action';
import { Notice } from './parts/notice';

export function Login({ refused, entered }: { refused: Error | undefined; entered: () => void }) {
  const [token, setToken] = useState('');
  const { busy, error = refused, act } = useAction();
  const id = useId();
  const submit = (event: Event) => {
    event.preventDefault();
    act(async () => {
      await client.logIn({ token });
      entered();
    });
  };
  return (
    <main class="login">
      <form class="panel" onSubmit={submit}>
        <div class="body">
          <p class="brand">
            <img src="/mark.svg" alt="" /> Tidemark
          </p>
          <h1>Log in</h1>
          <p class="meta">
            Your own controller on this machine: run <code>tidemark login</code> and open the address that it prints.
            Otherwise enter an access token, which the administrator of this controller can create for you.
          </p>
          {error && <Notice tone="bad">{error.message}</Notice>}
          <div class="field">
            <label for={id}>Token</label>
            <input
              id={id}
              type="password"
              autocomplete="current-password"
              required
              value={token}
              onInput={(event) => setToken(event.currentTarget.value)}
            />
          </div>
          <button class="main" disabled={busy || !token}>
            Log in
          </button>
        </div>
      </form>
    </main>
  );
}
