/** States and verdicts: a word and a shape, and a colour only besides. */

import type { ComponentChildren } from 'preact';

type Tone = 'good' | 'bad' | 'warn' | 'accent' | 'none';

const states: Record<string, [Tone, string]> = {
  queued: ['none', '○'],
  waiting: ['none', '○'],
  running: ['accent', '▶'],
  completed: ['good', '✓'],
  failed: ['bad', '✕'],
  cancelled: ['warn', '⊘'],
  interrupted: ['warn', '‖'],
  idle: ['good', '●'],
  busy: ['accent', '▶'],
  ending: ['warn', '◐'],
  silent: ['warn', '◐'],
  gone: ['bad', '✕'],
  better: ['good', '▲'],
  worse: ['bad', '▼'],
};

export function Badge({ tone, mark, children }: { tone: Tone; mark: string; children: ComponentChildren }) {
  return (
    <span class={`badge ${tone}`}>
      <span aria-hidden="true">{mark}</span>
      {children}
    </span>
  );
}

/** The state of a submission, run, stage or driver, or the outcome of a comparison. */
export function State({ state }: { state: string }) {
  const [tone, mark] = states[state] ?? ['none', '–'];
  return (
    <Badge tone={tone} mark={mark}>
      {state}
    </Badge>
  );
}

/** Whether numbers are what they seem to be. */
export function Valid({ valid }: { valid: boolean | null }) {
  if (valid === null) return <span class="meta">not judged</span>;
  return valid ? (
    <Badge tone="good" mark="✓">
      VALID
    </Badge>
  ) : (
    <Badge tone="bad" mark="✕">
      INVALID
    </Badge>
  );
}

/** The word for a search or a file. */
export const validWord = (valid: boolean | null) => (valid === null ? 'not judged' : valid ? 'VALID' : 'INVALID');
