/** Two groups of runs that are to be compared: kept while the pages are left and come back to. */

import { useMemo, useState } from 'preact/hooks';

type Name = 'a' | 'b';

export interface Groups {
  a: number[];
  b: number[];
  toggle: (group: Name, run: number) => void;
  clear: () => void;
}

let kept: Record<Name, number[]> = { a: [], b: [] };

export function useGroups(): Groups {
  const [groups, set] = useState(kept);
  return useMemo(() => {
    const keep = (next: Record<Name, number[]>) => set((kept = next));
    const toggle = (group: Name, run: number) => {
      const other: Name = group === 'a' ? 'b' : 'a';
      const without = (runs: number[]) => runs.filter((one) => one !== run);
      const mine = groups[group].includes(run) ? without(groups[group]) : [...groups[group], run];
      keep({ [group]: mine, [other]: without(groups[other]) } as Record<Name, number[]>);
    };
    return { ...groups, toggle, clear: () => keep({ a: [], b: [] }) };
  }, [groups]);
}

export function Marks({ run, groups }: { run: number; groups: Groups }) {
  return (
    <span class="marks">
      {(['a', 'b'] as const).map((group) => (
        <button
          key={group}
          class="small icon"
          aria-pressed={groups[group].includes(run)}
          aria-label={`Run ${run} in group ${group.toUpperCase()}`}
          onClick={() => groups.toggle(group, run)}
        >
          {group.toUpperCase()}
        </button>
      ))}
    </span>
  );
}

export function CompareBar({ groups }: { groups: Groups }) {
  const { a, b, clear } = groups;
  if (a.length + b.length === 0) {
    return <span class="meta">Mark runs as A and B to compare them.</span>;
  }
  const words = (runs: number[]) => (runs.length === 0 ? 'none' : runs.join(', '));
  return (
    <span class="actions row">
      <span>
        A: <b>{words(a)}</b> · B: <b>{words(b)}</b>
      </span>
      <button class="small" onClick={clear}>
        Clear
      </button>
      {a.length > 0 && b.length > 0 && (
        <a class="button main small" href={`/compare?a=${a.join(',')}&b=${b.join(',')}`}>
          Compare
        </a>
      )}
    </span>
  );
}
