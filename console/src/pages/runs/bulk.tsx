/** What can be done with several runs at once: compare, tag, delete. */

import { useState } from 'preact/hooks';
import type { HistoryRow } from '../../api';
import * as client from '../../client';
import { announce } from '../../lib/announce';
import { plural } from '../../lib/format';
import { useOperator } from '../../lib/session';
import { Confirm, useAction } from '../../parts/action';
import { Notice } from '../../parts/notice';
import type { Groups } from './groups';

interface Props {
  picked: ReadonlyMap<number, HistoryRow>;
  pick: (picked: ReadonlyMap<number, HistoryRow>) => void;
  groups: Groups;
  /** The rows that are shown. */
  page: readonly HistoryRow[];
  changed: () => void;
}

export function Bulk({ picked, pick, groups, page, changed }: Props) {
  const operator = useOperator();
  const [asking, ask] = useState(false);
  const [tag, setTag] = useState('');
  const { busy, error, act } = useAction();
  const runs = [...picked.keys()].sort((a, b) => a - b);
  const { a, b, put, clear } = groups;
  const all = page.flatMap((row) => (row.run === null ? [] : [[row.run, row] as const]));
  /** One after the other: the controller limits how many requests come at once. */
  const each = (words: string, what: (run: number, row: HistoryRow) => Promise<unknown>) =>
    act(async () => {
      for (const run of runs) await what(run, picked.get(run)!);
      announce(`${words}: ${plural(runs.length, 'run')}.`);
      changed();
    });
  const addTag = () =>
    each('Tagged', (run, { remark }) =>
      client.setRemark(run, { note: remark.note, tags: [...remark.tags, tag.trim()] }),
    );
  const group = (name: 'a' | 'b') => {
    put(name, runs);
    pick(new Map());
  };
  const words = (runs: number[]) => (runs.length === 0 ? 'none' : runs.join(', '));
  const [first, second] = runs;
  return (
    <>
      <div class="bulk row">
        <button class="small" onClick={() => pick(runs.length > 0 ? new Map() : new Map(all))}>
          {runs.length > 0 ? 'Select none' : 'Select all of this page'}
        </button>
        {runs.length > 0 && (
          <>
            <b>{runs.length} selected</b>
            {runs.length === 2 && (
              <a class="button main small" href={`/compare?a=${first}&b=${second}`}>
                Compare {first} with {second}
              </a>
            )}
            <button class="small" onClick={() => group('a')}>
              Put into A
            </button>
            <button class="small" onClick={() => group('b')}>
              Put into B
            </button>
            {operator && (
              <>
                <form
                  class="row"
                  onSubmit={(event) => {
                    event.preventDefault();
                    if (tag.trim()) addTag();
                  }}
                >
                  <input
                    aria-label="Tag for the selected runs"
                    placeholder="tag"
                    size={10}
                    value={tag}
                    onInput={(event) => setTag(event.currentTarget.value)}
                  />
                  <button class="small" disabled={busy || !tag.trim()}>
                    Add tag
                  </button>
                </form>
                <button class="small danger" disabled={busy || asking} onClick={() => ask(true)}>
                  Delete…
                </button>
              </>
            )}
          </>
        )}
        {a.length + b.length > 0 && (
          <span class="row end">
            <span>
              A: <b>{words(a)}</b> · B: <b>{words(b)}</b>
            </span>
            {a.length > 0 && b.length > 0 && (
              <a class="button main small" href={`/compare?a=${a.join(',')}&b=${b.join(',')}`}>
                Compare
              </a>
            )}
            <button class="small" onClick={clear}>
              Clear
            </button>
          </span>
        )}
      </div>
      {asking && (
        <Confirm
          question={`Delete ${plural(runs.length, 'run')} and their results? This cannot be undone.`}
          answers={[
            {
              words: `Delete ${plural(runs.length, 'run')}`,
              danger: true,
              act: () => each('Deleted', client.deleteRun),
            },
          ]}
          keep="Keep them"
          close={() => ask(false)}
        />
      )}
      {error && <Notice tone="bad">{error.message}</Notice>}
    </>
  );
}
