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

/** Offers a text for saving. */
export function save(name: string, text: string, type = 'text/csv'): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
