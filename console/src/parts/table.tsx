/** A table of many rows of one height, of which only those in view are in the document; sorted by its heads. */

import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { next, sorted, type Sorting, type Value } from '../lib/order';

export interface Column<T> {
  id: string;
  title: string;
  /** What the head's abbreviation means. */
  hint?: string;
  number?: boolean;
  /** What it is sorted by and what a file gets; a column without is only shown. */
  value?: (row: T) => Value;
  /** What a file gets, if something else. */
  file?: (row: T) => Value;
  /** What is shown; the value where it is left out. */
  show?: (row: T) => ComponentChildren;
}

interface Props<T> {
  label: string;
  rows: readonly T[];
  columns: readonly Column<T>[];
  /** What tells rows apart; their places where nothing else does. */
  id?: (row: T) => string | number;
  sorting: Sorting | null;
  sort: (sorting: Sorting) => void;
  /** Most pixels of height; it scrolls beyond. */
  most?: number;
  selected?: (row: T) => boolean;
  /** The rows come in the order that was chosen. */
  arranged?: boolean;
}

/** As in the style sheet. */
const rowHeight = 34;
const beyond = 8;

/** The rows in the order that the user chose; as they came until then. */
export function arranged<T>(rows: readonly T[], columns: readonly Column<T>[], sorting: Sorting | null): readonly T[] {
  const value = columns.find((column) => column.id === sorting?.column)?.value;
  return value && sorting ? sorted(rows, value, sorting.descending) : rows;
}

export function Table<T>(props: Props<T>) {
  const { label, rows, columns, id, sorting, sort, most = 560, selected, arranged: asTheyCome = false } = props;
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const order = useMemo(
    () => (asTheyCome ? rows : arranged(rows, columns, sorting)),
    [rows, columns, sorting, asTheyCome],
  );
  useEffect(() => {
    box.current?.scrollTo({ top: 0 });
  }, [sorting?.column, sorting?.descending]);

  const fits = Math.ceil(most / rowHeight);
  const last = Math.max(0, order.length - fits);
  const from = Math.max(0, Math.min(Math.floor(top / rowHeight), last) - beyond);
  const to = Math.min(order.length, from + fits + 2 * beyond);
  const gap = (rows: number) =>
    rows > 0 && (
      <tr aria-hidden="true" style={{ height: `${rows * rowHeight}px` }}>
        <td class="gap" colSpan={columns.length} style={{ height: `${rows * rowHeight}px` }} />
      </tr>
    );
  return (
    <div
      class="data"
      ref={box}
      tabIndex={0}
      role="region"
      aria-label={label}
      style={{ maxHeight: `${most}px` }}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
    >
      <table aria-label={label} aria-rowcount={order.length + 1}>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((column) => (
              <Head key={column.id} column={column} sorting={sorting} sort={sort} />
            ))}
          </tr>
        </thead>
        <tbody>
          {gap(from)}
          {order.slice(from, to).map((row, index) => (
            <tr key={id ? id(row) : from + index} aria-rowindex={from + index + 2} aria-selected={selected?.(row)}>
              {columns.map((column) => (
                <td key={column.id} class={column.number ? 'n' : ''}>
                  {column.show ? column.show(row) : column.value?.(row)}
                </td>
              ))}
            </tr>
          ))}
          {gap(order.length - to)}
        </tbody>
      </table>
    </div>
  );
}

function Head<T>(props: { column: Column<T>; sorting: Sorting | null; sort: (sorting: Sorting) => void }) {
  const { column, sorting, sort } = props;
  const is = sorting?.column === column.id;
  const order = is ? (sorting.descending ? 'descending' : 'ascending') : undefined;
  return (
    <th scope="col" class={column.number ? 'n' : ''} aria-sort={order} title={column.hint}>
      {column.value ? (
        <button
          onClick={() => sort(next(sorting ?? { column: '', descending: false }, column.id, column.number ?? false))}
        >
          {column.title}
          <span aria-hidden="true">{is ? (sorting.descending ? '▾' : '▴') : ''}</span>
        </button>
      ) : (
        <span>{column.title}</span>
      )}
    </th>
  );
}
