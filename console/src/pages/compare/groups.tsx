/** The two groups as typed numbers. */

import { useId, useState } from 'preact/hooks';
import { parseRuns } from './parse';

interface Props {
  a: string;
  b: string;
  compare: (a: number[], b: number[]) => void;
}

export function Groups({ a, b, compare }: Props) {
  const [texts, set] = useState({ a, b });
  const id = useId();
  const one = parseRuns(texts.a);
  const other = parseRuns(texts.b);
  const ready = one && other && one.length > 0 && other.length > 0;
  const submit = (event: Event) => {
    event.preventDefault();
    if (ready) compare(one, other);
  };
  const field = (name: 'a' | 'b', label: string, runs: number[] | null) => (
    <div class="field">
      <label for={`${id}${name}`}>{label}</label>
      <input
        id={`${id}${name}`}
        inputMode="text"
        placeholder="12, 14-16"
        value={texts[name]}
        aria-invalid={runs === null}
        onInput={(event) => set({ ...texts, [name]: event.currentTarget.value })}
      />
      {runs === null && <p class="bad">✕ Enter run numbers such as 12, 14-16.</p>}
    </div>
  );
  return (
    <form class="panel" onSubmit={submit}>
      <div class="body groups">
        {field('a', 'A: baseline runs', one)}
        <button
          type="button"
          class="icon"
          aria-label="Swap A and B"
          title="Swap A and B"
          onClick={() => set({ a: texts.b, b: texts.a })}
        >
          ⇄
        </button>
        {field('b', 'B: runs to compare', other)}
        <button class="main" disabled={!ready}>
          Compare
        </button>
      </div>
    </form>
  );
}
