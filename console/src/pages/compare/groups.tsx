/** The two groups as typed numbers, and the margin within which they count as equal. */

import { useId, useState } from 'preact/hooks';
import { parseMargin, parseRuns } from './parse';

interface Props {
  a: string;
  b: string;
  margin: string;
  compare: (a: number[], b: number[], margin: string) => void;
}

export function Groups({ a, b, margin, compare }: Props) {
  const [texts, set] = useState({ a, b, margin });
  const id = useId();
  const one = parseRuns(texts.a);
  const other = parseRuns(texts.b);
  const share = parseMargin(texts.margin);
  const ready = one && other && share !== null && one.length > 0 && other.length > 0;
  const submit = (event: Event) => {
    event.preventDefault();
    if (ready) compare(one, other, share);
  };
  const field = (name: keyof typeof texts, label: string, hint: string, wrong: string | undefined) => (
    <div class="field">
      <label for={`${id}${name}`}>{label}</label>
      <input
        id={`${id}${name}`}
        inputMode="text"
        placeholder={hint}
        value={texts[name]}
        aria-invalid={wrong !== undefined}
        onInput={(event) => set({ ...texts, [name]: event.currentTarget.value })}
      />
      {wrong && <p class="bad">✕ {wrong}</p>}
    </div>
  );
  const runs = (runs: number[] | null) => (runs === null ? 'Enter run numbers such as 12, 14-16.' : undefined);
  return (
    <form class="panel" onSubmit={submit}>
      <div class="body groups">
        {field('a', 'A: baseline runs', '12, 14-16', runs(one))}
        <button
          type="button"
          class="icon"
          aria-label="Swap A and B"
          title="Swap A and B"
          onClick={() => set({ ...texts, a: texts.b, b: texts.a })}
        >
          ⇄
        </button>
        {field('b', 'B: runs to compare', '17-19', runs(other))}
        {field('margin', 'Margin', 'none', share === null ? 'Enter a share such as 5 %.' : undefined)}
        <button class="main" disabled={!ready}>
          Compare
        </button>
      </div>
    </form>
  );
}
