/** Buttons that ask the controller for something, and questions before those that cannot be taken back. */

import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { announce } from '../lib/announce';

/** Carries something out once at a time and keeps why it was refused. */
export function useAction(): { busy: boolean; error: Error | undefined; act: (what: () => Promise<unknown>) => void } {
  const [state, set] = useState<{ busy: boolean; error?: Error }>({ busy: false });
  const act = (what: () => Promise<unknown>) => {
    set({ busy: true });
    what().then(
      () => set({ busy: false }),
      (error: Error) => {
        set({ busy: false, error });
        announce(error.message);
      },
    );
  };
  return { busy: state.busy, error: state.error, act };
}

interface ConfirmProps {
  question: ComponentChildren;
  /** The answers that do something: their words and what they do. */
  answers: { words: string; danger?: boolean; act: () => void }[];
  keep: string;
  close: () => void;
}

/** Asks in the page. The harmless answer has the focus; Escape gives it. */
export function Confirm({ question, answers, keep, close }: ConfirmProps) {
  const harmless = useRef<HTMLButtonElement>(null);
  useEffect(() => harmless.current?.focus(), []);
  return (
    <div
      class="confirm"
      role="alertdialog"
      aria-label="Please confirm"
      onKeyDown={(event) => event.key === 'Escape' && close()}
    >
      <div>{question}</div>
      <div class="row">
        <button ref={harmless} onClick={close}>
          {keep}
        </button>
        {answers.map(({ words, danger, act }) => (
          <button
            key={words}
            class={danger ? 'danger' : ''}
            onClick={() => {
              act();
              close();
            }}
          >
            {words}
          </button>
        ))}
      </div>
    </div>
  );
}
