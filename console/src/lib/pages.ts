/** A list that the controller tells in pages: shown as it comes, until all is there. */

import { useEffect, useState } from 'preact/hooks';

export interface Pages<T> {
  rows: T[];
  done: boolean;
  error: Error | undefined;
}

/** Small first, so that something is there at once; the rest in large steps. */
const first = 100;
const step = 1000;

/**
 * Fetches all pages. `number` is what the list counts by: the next page goes on from the last row's. The controller may
 * give fewer rows than were asked for, so that only an empty page says that this was all.
 */
export function usePages<T>(
  fetch: (limit: number, before?: number) => Promise<T[]>,
  number: (row: T) => number,
): Pages<T> {
  const [pages, set] = useState<Pages<T>>({ rows: [], done: false, error: undefined });
  useEffect(() => {
    let wanted = true;
    const load = async () => {
      let rows: T[] = [];
      for (let limit = first; wanted; limit = step) {
        const last = rows[rows.length - 1];
        const page = await fetch(limit, last && number(last));
        rows = rows.concat(page);
        const done = page.length === 0;
        if (wanted) set({ rows, done, error: undefined });
        if (done) return;
      }
    };
    load().catch((error: Error) => wanted && set((before) => ({ ...before, done: true, error })));
    return () => {
      wanted = false;
    };
  }, []);
  return pages;
}
