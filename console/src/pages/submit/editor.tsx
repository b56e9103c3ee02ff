/** A plain text field with line numbers, in which lines with problems are marked by shape and colour. */

import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { Problem } from '../../api';

interface Props {
  text: string;
  /** Left out: the text can only be read. */
  change?: (text: string) => void;
  problems: Problem[];
  /** Puts the cursor at this problem; a new object does so again. */
  goTo?: Problem;
}

/** As in the style sheet. */
const lineHeight = 20;

/** Where a line begins in a text, from 1. */
function lineStart(text: string, line: number): number {
  let at = 0;
  for (let passed = 1; passed < line; passed++) {
    const end = text.indexOf('\n', at);
    if (end < 0) return at;
    at = end + 1;
  }
  return at;
}

export function Editor({ text, change, problems, goTo }: Props) {
  const field = useRef<HTMLTextAreaElement>(null);
  const gutter = useRef<HTMLDivElement>(null);
  const lines = useMemo(() => text.split('\n').length, [text]);
  const marked = useMemo(() => {
    const worst = new Map<number, Problem>();
    for (const problem of problems) {
      const other = worst.get(problem.line);
      if (!other || (other.warning && !problem.warning)) worst.set(problem.line, problem);
    }
    return worst;
  }, [problems]);

  useEffect(() => {
    const area = field.current;
    if (!goTo || !area) return;
    const start = lineStart(area.value, Math.max(1, goTo.line)) + Math.max(0, goTo.column - 1);
    area.focus();
    area.setSelectionRange(start, start + goTo.length);
    area.scrollTop = Math.max(0, (goTo.line - 6) * lineHeight);
  }, [goTo]);

  const follow = () => {
    if (gutter.current && field.current) {
      gutter.current.style.transform = `translateY(${-field.current.scrollTop}px)`;
    }
  };
  return (
    <div class="editor">
      <div class="gutter" aria-hidden="true">
        <div ref={gutter}>
          {Array.from({ length: lines }, (_, index) => {
            const problem = marked.get(index + 1);
            const kind = problem ? (problem.warning ? 'warn' : 'bad') : '';
            return (
              <div key={index} class={kind} title={problem?.message}>
                {problem ? (problem.warning ? '▲ ' : '✕ ') : ''}
                {index + 1}
              </div>
            );
          })}
        </div>
      </div>
      <textarea
        ref={field}
        aria-label="Document"
        aria-invalid={problems.some((problem) => !problem.warning)}
        spellcheck={false}
        autocomplete="off"
        autocapitalize="off"
        wrap="off"
        readOnly={!change}
        value={text}
        placeholder="Or paste a document, or write one"
        onInput={(event) => change?.(event.currentTarget.value)}
        onScroll={follow}
      />
    </div>
  );
}
