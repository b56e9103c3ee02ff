/** The head of all pages: the brand, links to the pages, the theme, and who is looking. */

import { useState } from 'preact/hooks';
import type { Info } from './api';
import { setTheme, theme, type Theme } from './lib/theme';

const pages: [string, string][] = [
  ['/', 'Overview'],
  ['/submit', 'Submit'],
  ['/runs', 'Runs'],
  ['/matrix', 'Matrix'],
  ['/compare', 'Compare'],
  ['/evaluations', 'Evaluations'],
  ['/audit', 'Audit'],
];

/** The page that an address belongs to: a submission's to the overview. */
const belongs = (path: string, page: string) =>
  page === '/' ? path === '/' || path.startsWith('/w/') : path === page || path.startsWith(`${page}/`);

export function Head({ info, path, leave }: { info: Info; path: string; leave: () => void }) {
  const operator = info.role === 'operator';
  const shown = pages.filter(([page]) => operator || page !== '/audit');
  return (
    <header class="top">
      <a class="brand" href="/" aria-label={`Tidemark, ${info.name}: overview`}>
        <img src="/mark.svg" alt="" />
        Tidemark <span>{info.name}</span>
      </a>
      <nav class="pages" aria-label="Pages">
        {shown.map(([page, name]) => (
          <a key={page} href={page} aria-current={belongs(path, page) ? 'page' : undefined}>
            {name}
          </a>
        ))}
      </nav>
      <div class="who">
        <ThemeSwitch />
        {info.user && (
          <>
            <span class="user-name" title={`You are ${info.user}, ${info.role}`}>
              {info.user} · {info.role}
            </span>
            <button class="small" onClick={leave}>
              Log out
            </button>
          </>
        )}
      </div>
    </header>
  );
}

const following: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' };
const marks: Record<Theme, string> = { system: '◐', light: '☀', dark: '☾' };

function ThemeSwitch() {
  const [chosen, set] = useState(theme);
  const turn = () => {
    setTheme(following[chosen]);
    set(following[chosen]);
  };
  const words = `Colours: ${chosen}. Switch to ${following[chosen]}.`;
  return (
    <button class="small icon plain" aria-label={words} title={words} onClick={turn}>
      <span aria-hidden="true">{marks[chosen]}</span>
    </button>
  );
}
