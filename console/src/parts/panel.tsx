/** A named part of a page. */

import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';

interface Props {
  title: string;
  /** What stands beside the title. */
  aside?: ComponentChildren;
  /** Without the usual space around: for tables. */
  flush?: boolean;
  class?: string;
  children: ComponentChildren;
}

export function Panel({ title, aside, flush, class: name = '', children }: Props) {
  const id = useId();
  return (
    <section class={`panel ${name}`} aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {aside}
      </header>
      {flush ? children : <div class="body">{children}</div>}
    </section>
  );
}
