/** A file of the controller, to save or to open in a tab of its own. The browser fetches it by itself: so with a ticket. */

import * as client from '../client';
import { download } from '../lib/csv';
import { useAction } from './action';
import { Notice } from './notice';

interface FileProps {
  address: string;
  words: string;
  /** Whether it is a page, which is opened. */
  opens?: boolean;
}

export function File({ address, words, opens = false }: FileProps) {
  const { busy, error, act } = useAction();
  const fetch = () => {
    // Browsers let a tab be opened at the click, and not after an answer.
    const tab = opens ? open('', '_blank') : null;
    act(async () => {
      try {
        const ticketed = await client.ticketed(address);
        if (tab) tab.location.replace(ticketed);
        else download(ticketed);
      } catch (error) {
        tab?.close();
        throw error;
      }
    });
  };
  return (
    <>
      <button class="small" disabled={busy} onClick={fetch}>
        {words}
      </button>
      {error && <Notice tone="bad">{error.message}</Notice>}
    </>
  );
}
