/** Something that the user should know: troubles, refusals, good news. */

import type { ComponentChildren } from 'preact';

const marks = { bad: '✕', warn: '!', good: '✓', note: 'i' };

export function Notice({ tone, children }: { tone: keyof typeof marks; children: ComponentChildren }) {
  return (
    <div class={`notice ${tone}`} role={tone === 'bad' ? 'alert' : undefined}>
      <span class="mark" aria-hidden="true">
        {marks[tone]}
      </span>
      {children}
    </div>
  );
}

/** Why something could not be fetched, with another try. */
export function Failure({ error, again }: { error: Error; again?: () => void }) {
  return (
    <Notice tone="bad">
      {error.message}{' '}
      {again && (
        <button class="small" onClick={again}>
          Try again
        </button>
      )}
    </Notice>
  );
}
