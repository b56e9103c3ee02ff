/** What the list of runs shows, as its address says it: a link shows the same to somebody else. */

import type { HistoryOrder, HistoryQuery } from '../../client';

/** Rows of a page. */
export const pageSize = 100;

export interface Query {
  text: string;
  state: string;
  valid: '' | 'true' | 'false';
  tag: string;
  evaluation: string;
  sort: HistoryOrder;
  ascending: boolean;
  /** From 1. */
  page: number;
}

const orders: readonly HistoryOrder[] = ['started', 'name', 'elapsed', 'throughput', 'p99', 'failed'];

export function fromAddress(search: URLSearchParams): Query {
  const text = (name: string) => search.get(name) ?? '';
  const valid = text('valid');
  const sort = orders.find((order) => order === text('sort')) ?? 'started';
  return {
    text: text('text'),
    state: text('state'),
    valid: valid === 'true' || valid === 'false' ? valid : '',
    tag: text('tag'),
    evaluation: /^\d+$/.test(text('evaluation')) ? text('evaluation') : '',
    sort,
    ascending: text('ascending') === 'true',
    page: Math.max(1, Math.floor(Number(text('page'))) || 1),
  };
}

/** The address of the list; what is as usual is left out. */
export function toAddress(query: Query): string {
  const usual = fromAddress(new URLSearchParams());
  const changed = Object.entries(query).filter(([key, value]) => value !== usual[key as keyof Query]);
  const search = new URLSearchParams(changed.map(([key, value]) => [key, String(value)])).toString();
  return search ? `/runs?${search}` : '/runs';
}

export const toHistory = (query: Query): HistoryQuery => ({
  text: query.text,
  state: query.state,
  tag: query.tag,
  sort: query.sort,
  ascending: query.ascending,
  limit: pageSize,
  offset: (query.page - 1) * pageSize,
  ...(query.valid ? { valid: query.valid === 'true' } : {}),
  ...(query.evaluation ? { evaluation: Number(query.evaluation) } : {}),
});
