/** Sorting and filtering of tables, and putting a queue into another order. */

/** What a cell is worth when rows are sorted; null is always last. */
export type Value = string | number | boolean | null;

export interface Sorting {
  column: string;
  descending: boolean;
}

const collator = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

function order(a: Value, b: Value): number {
  if (typeof a === 'string' && typeof b === 'string') return collator.compare(a, b);
  return Number(a) - Number(b);
}

/** The rows in the order of a value; equal ones stay as they are. */
export function sorted<T>(rows: readonly T[], value: (row: T) => Value, descending: boolean): T[] {
  const keyed = rows.map((row) => ({ row, key: value(row) }));
  keyed.sort((a, b) => {
    if (a.key === null || b.key === null) return Number(a.key === null) - Number(b.key === null);
    return descending ? order(b.key, a.key) : order(a.key, b.key);
  });
  return keyed.map(({ row }) => row);
}

/** What a click on a column's head makes of the sorting. */
export function next(now: Sorting, column: string, number: boolean): Sorting {
  if (now.column !== column) return { column, descending: number };
  return { column, descending: !now.descending };
}

/** Whether every word of a search occurs in one of the texts. */
export function matches(search: string, ...texts: string[]): boolean {
  const text = texts.join(' ').toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/** A place in the queue: its number and its priority. */
export interface Place {
  id: number;
  priority: number;
}

/**
 * What to ask of the controller so that the submission gets to the place `to` (from 0) of the queue: right before the
 * one that is there then, or, at the end, the priority below the last one's. Null where nothing changes.
 */
export function move(
  queue: readonly Place[],
  id: number,
  to: number,
): { before: number } | { priority: number } | null {
  const from = queue.findIndex((place) => place.id === id);
  const others = queue.filter((place) => place.id !== id);
  to = Math.max(0, Math.min(to, others.length));
  if (from < 0 || from === to) return null;
  const following = others[to];
  if (following) return { before: following.id };
  const last = others[others.length - 1];
  return last ? { priority: Math.max(-100, last.priority - 1) } : null;
}
