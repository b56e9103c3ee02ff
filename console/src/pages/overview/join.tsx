/** How another machine becomes a driver: a command to copy. */

import { isLocal, joinCommand } from '../../lib/join';
import { useInfo } from '../../lib/session';
import { Command } from '../../parts/command';

export function Join() {
  const { fingerprint } = useInfo();
  const words = joinCommand(location.origin, fingerprint);
  return (
    <>
      <Command words={words} label="Command that joins a driver" />
      <small>
        {words.includes('--token-file') ? (
          <>
            Make the file here: <code>tidemark token add drivers --role driver &gt; drivers.token</code>
          </>
        ) : (
          isLocal(location.hostname) && (
            <>
              Other machines do not reach this address: start <code>tidemark serve</code> with <code>--listen</code> for
              them.
            </>
          )
        )}
      </small>
    </>
  );
}
