/** Says changes to those who cannot see them: one polite live region for all pages. */

const region = document.createElement('div');
region.className = 'unseen';
region.setAttribute('role', 'status');

/** Puts the region into the document; it must be there before something is said. */
export const mountAnnouncer = () => document.body.append(region);

export function announce(text: string): void {
  // The same text again would not be read.
  region.textContent = region.textContent === text ? `${text}\u00a0` : text;
}
