/** A command line to copy. */

import { useRef, useState } from 'preact/hooks';
import { announce } from '../lib/announce';

export function Command({ words, label }: { words: string; label: string }) {
  const code = useRef<HTMLElement>(null);
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(words);
      setCopied(true);
      announce('Copied.');
      setTimeout(() => setCopied(false), 2000);
    } catch {
      // Browsers copy only for pages that came over TLS or from this machine: what is selected can be copied by hand.
      if (code.current) getSelection()?.selectAllChildren(code.current);
      announce('The command is selected: copy it with the keyboard.');
    }
  };
  return (
    <div class="command" role="group" aria-label={label}>
      <code ref={code} tabIndex={0}>
        {words.split(/(?<= )/).map((word, at) => (
          // An option is not broken at its hyphens.
          <span key={at} class={word.startsWith('-') ? 'option' : ''}>
            {word}
          </span>
        ))}
      </code>
      <button type="button" class="small" onClick={() => void copy()}>
        {copied ? '✓ Copied' : 'Copy'}
      </button>
    </div>
  );
}
