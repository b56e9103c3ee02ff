/** Comma-separated values (RFC 4180), and handing a text to the user as a file. */

import type { Value } from './order';

/** A text that begins like a formula gets an apostrophe, for spreadsheets would carry it out. */
function cell(value: Value): string {
  if (value === null) return '';
  const text = typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const csv = (rows: readonly (readonly Value[])[]) =>
  rows.map((row) => row.map(cell).join(',') + '\r\n').join('');

/** Saves what is at an address, under this name or the one that its server gives it. */
export function download(address: string, name = ''): void {
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
}

/** Offers a text for saving. */
export function save(name: string, text: string, type = 'text/csv'): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  download(address, name);
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
