/**
 * The key of this browser's session. It is kept where only pages of this scheme, host and port reach it, and is sent only by them;
 * a cookie would go to every port of the host.
 */

const name = 'tidemark.session';

export const key = () => localStorage.getItem(name);

export const keep = (key: string) => localStorage.setItem(name, key);

/** Forgets a key, unless another one has taken its place meanwhile. */
export function forget(key: string): void {
  if (localStorage.getItem(name) === key) localStorage.removeItem(name);
}

/** Calls whenever another tab logs in or out; the result ends that. */
export function onChange(changed: () => void): () => void {
  const look = (event: StorageEvent) => {
    if (event.key === name || event.key === null) changed();
  };
  addEventListener('storage', look);
  return () => removeEventListener('storage', look);
}
