/** Which page is shown: the address, and links that do not load the page anew. */

import { useEffect, useState } from 'preact/hooks';

const moved = new EventTarget();

/** Goes to an address of the console. */
export function go(address: string, replace = false): void {
  if (replace) history.replaceState(null, '', address);
  else history.pushState(null, '', address);
  moved.dispatchEvent(new Event('moved'));
}

/** The address as it is now. */
export function useAddress(): URL {
  const [address, set] = useState(() => new URL(location.href));
  useEffect(() => {
    const read = () => set(new URL(location.href));
    addEventListener('popstate', read);
    moved.addEventListener('moved', read);
    return () => {
      removeEventListener('popstate', read);
      moved.removeEventListener('moved', read);
    };
  }, []);
  return address;
}

/** Follows plain clicks on links of the console within the page; all others are the browser's. */
export function followLinks(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = (event.target as Element).closest('a');
  if (!link || link.target || link.hasAttribute('download') || link.origin !== location.origin) return;
  if (link.pathname.startsWith('/api/') || link.getAttribute('href')?.startsWith('#')) return;
  event.preventDefault();
  go(link.pathname + link.search);
}
