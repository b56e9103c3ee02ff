/** Light or dark: as the system says, or as the user chose; and the colours that canvases need. */

import { useEffect, useState } from 'preact/hooks';

export type Theme = 'system' | 'light' | 'dark';

const key = 'tidemark.theme';
const changed = new EventTarget();

export function theme(): Theme {
  const kept = localStorage.getItem(key);
  return kept === 'light' || kept === 'dark' ? kept : 'system';
}

export function setTheme(theme: Theme): void {
  if (theme === 'system') localStorage.removeItem(key);
  else localStorage.setItem(key, theme);
  applyTheme();
}

/** Puts the choice on the document; the style sheet does the rest. */
export function applyTheme(): void {
  const chosen = theme();
  if (chosen === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = chosen;
  changed.dispatchEvent(new Event('changed'));
}

/** A number that changes whenever colours do, for what must be drawn anew then. */
export function useColours(): number {
  const [turn, set] = useState(0);
  useEffect(() => {
    const next = () => set((turn) => turn + 1);
    const system = matchMedia('(prefers-color-scheme: dark)');
    system.addEventListener('change', next);
    changed.addEventListener('changed', next);
    return () => {
      system.removeEventListener('change', next);
      changed.removeEventListener('changed', next);
    };
  }, []);
  return turn;
}

/** A variable of the style sheet as a colour that a canvas understands. */
export function colour(variable: string): string {
  const probe = document.createElement('i');
  probe.style.color = `var(${variable})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}
