/** The frame around all pages: who is looking, the head with its links, and the page that the address names. */

import { useEffect, useRef, useState } from 'preact/hooks';
import type { Info } from './api';
import * as client from './client';
import { Enter } from './enter';
import { Login } from './login';
import { announce } from './lib/announce';
import { entry } from './lib/entry';
import { onChange } from './lib/key';
import { followLinks, useAddress } from './lib/router';
import { Session } from './lib/session';
import { duration, fullMoment } from './lib/format';
import { Failure, Notice } from './parts/notice';
import { Head } from './head';
import { Page } from './routes';

export function App() {
  const [opened, setOpened] = useState(entry);
  const [info, setInfo] = useState<Info | null>(null);
  const [login, setLogin] = useState(false);
  const [error, setError] = useState<Error>();
  /** Why the login address that was opened did not log in. */
  const [refused, setRefused] = useState<Error>();
  const ask = () => {
    setError(undefined);
    setLogin(false);
    client.info().then(setInfo, (error: Error) => {
      if (!(error instanceof client.Refused && error.status === 401)) setError(error);
    });
  };
  useEffect(() => {
    const needed = () => setLogin(true);
    client.unauthorized.addEventListener('unauthorized', needed);
    const end = onChange(ask);
    if (!entry) ask();
    return () => {
      client.unauthorized.removeEventListener('unauthorized', needed);
      end();
    };
  }, []);
  if (opened) {
    const done = (error?: Error) => {
      setOpened(undefined);
      setRefused(error);
      ask();
    };
    return <Enter entry={opened} done={done} />;
  }
  if (login) return <Login refused={refused} entered={ask} />;
  if (error) {
    return (
      <main>
        <Failure error={error} again={ask} />
      </main>
    );
  }
  if (!info) return null;
  return (
    <Session.Provider value={info}>
      <Frame key={info.user} info={info} leave={() => void client.logOut().then(() => location.assign('/'))} />
    </Session.Provider>
  );
}

function Frame({ info, leave }: { info: Info; leave: () => void }) {
  const address = useAddress();
  const main = useRef<HTMLElement>(null);
  const first = useRef(true);
  // Another page begins at its top and, for the keyboard and screen readers, at its content.
  useEffect(() => {
    if (!first.current) {
      scrollTo({ top: 0 });
      main.current?.focus({ preventScroll: true });
      announce(document.title);
    }
    first.current = false;
  }, [address.pathname]);
  return (
    <div onClick={followLinks}>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <Head info={info} path={address.pathname} leave={leave} />
      <main id="main" tabIndex={-1} ref={main}>
        {info.troubles.length > 0 && address.pathname !== '/' && (
          <Notice tone="bad">
            {info.troubles.map((trouble) => (
              <p key={trouble}>{trouble}</p>
            ))}
          </Notice>
        )}
        <Page address={address} />
      </main>
      <footer class="foot">
        Tidemark {info.version} ·{' '}
        <span title={fullMoment(info.started_unix_ms)}>
          controller up for {duration(Math.max(0, Date.now() - info.started_unix_ms))}
        </span>{' '}
        ·{' '}
        <a href="/api/v1/openapi.json" target="_blank">
          API
        </a>
      </footer>
    </div>
  );
}
