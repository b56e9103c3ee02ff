/** How another machine becomes a driver: a command to copy, and what makes its token. */

import type { Driver } from '../../api';
import { freeName, isLocal, join } from '../../lib/join';
import { useInfo } from '../../lib/session';
import { Command } from '../../parts/command';

export function Join({ drivers }: { drivers: readonly Driver[] }) {
  const { fingerprint } = useInfo();
  const { command, token } = join(location.origin, fingerprint, freeName(drivers.map(({ name }) => name)));
  return (
    <>
      <Command words={command} label="Command that joins a driver" />
      {token && (
        <>
          <small>Its token is made here, for this name:</small>
          <Command words={token} label="Command that makes the driver’s token" />
        </>
      )}
      {!token && isLocal(location.hostname) && (
        <small>
          Other machines do not reach this address: start <code>tidemark serve</code> with <code>--listen</code> for
          them.
        </small>
      )}
    </>
  );
}
