/** Two groups of runs that are to be compared: kept while the pages are left and come back to. */

import { useEffect, useMemo, useState } from 'preact/hooks';

type Name = 'a' | 'b';

export interface Groups {
  a: number[];
  b: number[];
  /** Puts runs into a group, and takes them out of the other. */
  put: (group: Name, runs: number[]) => void;
  clear: () => void;
}

let kept: Record<Name, number[]> = { a: [], b: [] };

/** `first`: a run that is in group A from the beginning. */
export function useGroups(first: number | null): Groups {
  const [groups, set] = useState(kept);
  const found = useMemo(() => {
    const keep = (next: Record<Name, number[]>) => set((kept = next));
    const put = (group: Name, runs: number[]) => {
      const other: Name = group === 'a' ? 'b' : 'a';
      keep({
        [group]: [...new Set([...groups[group], ...runs])],
        [other]: groups[other].filter((run) => !runs.includes(run)),
      } as Record<Name, number[]>);
    };
    return { ...groups, put, clear: () => keep({ a: [], b: [] }) };
  }, [groups]);
  useEffect(() => {
    if (first !== null) found.put('a', [first]);
  }, [first]);
  return found;
}
