/** The document of a submission, fetched when it is unfolded. */

import { useState } from 'preact/hooks';
import * as client from '../../client';
import { useResource } from '../../lib/resource';
import { Failure } from '../../parts/notice';

export function Document({ id }: { id: number }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Document</summary>
      {open && <Text id={id} />}
    </details>
  );
}

function Text({ id }: { id: number }) {
  const { data, error, reload } = useResource(`document ${id}`, () => client.submittedDocument(id));
  if (error) return <Failure error={error} again={reload} />;
  return (
    <>
      <p class="meta">Secrets are redacted.</p>
      <pre tabIndex={0}>{data ?? 'Loading…'}</pre>
    </>
  );
}
