/** The controller's API: one function per endpoint that the console uses. */

import type * as api from './api';
import * as session from './lib/key';

const base = '/api/v1';

/** Why the controller did not do what was asked. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly problems: api.Problem[] = [],
  ) {
    super(message);
  }
}

/** Told when an answer says that a login is needed. */
export const unauthorized = new EventTarget();

interface Sent {
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

async function send(method: string, path: string, { body, headers, signal }: Sent = {}) {
  const key = session.key();
  const init: RequestInit = {
    method,
    headers: {
      accept: 'application/json',
      ...(key !== null && { authorization: `Bearer ${key}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  };
  let response: Response;
  try {
    response = await fetch(base + path, init);
  } catch {
    throw new Refused(0, 'Cannot reach the controller. Check that it is running and that the network is up.');
  }
  if (response.ok) return response;
  if (response.status === 401 && !path.startsWith('/session')) {
    if (key !== null) session.forget(key);
    unauthorized.dispatchEvent(new Event('unauthorized'));
  }
  throw await refusal(response);
}

async function refusal(response: Response): Promise<Refused> {
  const text = await response.text();
  try {
    const trouble = JSON.parse(text) as api.Trouble;
    return new Refused(response.status, trouble.message, trouble.problems);
  } catch {
    return new Refused(response.status, text.slice(0, 300) || `The controller answered ${response.status}.`);
  }
}

async function json<T>(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<T> {
  return (await (await send(method, path, { body, headers })).json()) as T;
}

const get = <T>(path: string) => json<T>('GET', path);
const text = async (path: string) => (await send('GET', path, { headers: { accept: '*/*' } })).text();

/** A key that makes a repeated submission harmless. `randomUUID` is missing where the page came without TLS. */
function idempotencyKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

export const info = () => get<api.Info>('/info');
/** Whom a token or a code would log in. */
export const owner = (login: api.Login) => json<api.Owner>('POST', '/session/owner', login);

/** Logs in; a session that this browser had before ends. */
export async function logIn(login: api.Login): Promise<void> {
  const before = session.key();
  session.keep((await json<api.Session>('POST', '/session', login)).key);
  if (before !== null) await end(before);
}

/** Logs out, here and at the controller. */
export async function logOut(): Promise<void> {
  const key = session.key();
  if (key === null) return;
  session.forget(key);
  await end(key);
}

/** Ends a session. One that cannot be ended now ends by itself, and nobody has its key any more. */
const end = (key: string) =>
  send('DELETE', '/session', { headers: { authorization: `Bearer ${key}` } }).catch(() => undefined);

export const overview = () => get<api.Overview>('/overview');
export const drivers = () => get<api.Driver[]>('/drivers');

export const targets = () => get<api.TargetForm[]>('/targets');
export const check = (document: string, from?: number) =>
  json<api.Check>('POST', '/check', { document, ...(from === undefined ? {} : { from }) });
export const submit = (submit: api.Submit) =>
  json<api.Submission>('POST', '/submissions', submit, { 'idempotency-key': idempotencyKey() });
export const submission = (id: number) => get<api.Submission>(`/submissions/${id}`);
export const change = (id: number, change: api.Change) => json<api.Submission>('PATCH', `/submissions/${id}`, change);
export const cancel = (id: number, at_once: boolean) =>
  json<api.Submission>('POST', `/submissions/${id}/cancel`, { at_once });
export const resubmit = (id: number) => json<api.Submission>('POST', `/submissions/${id}/resubmit`);
export const submittedDocument = (id: number) => text(`/submissions/${id}/document`);
export const live = (id: number) => get<api.LiveRun>(`/submissions/${id}/live`);

export const run = (id: number) => get<api.RunRecord>(`/runs/${id}`);
export const deleteRun = (id: number) => send('DELETE', `/runs/${id}`);
export const figures = (run: number) => get<api.Figure[]>(`/runs/${run}/figures`);
export const figure = (run: number, name: string) => text(`/runs/${run}/figures/${encodeURIComponent(name)}.svg`);
export const compare = (a: number[], b: number[], margin = '') =>
  get<api.Comparison>(
    `/compare?a=${a.join(',')}&b=${b.join(',')}${margin ? `&margin=${encodeURIComponent(margin)}` : ''}`,
  );
export const evaluations = () => get<api.EvaluationRow[]>('/evaluations');

/** A page of a list that is told newest first. */
const paged =
  <T>(path: string) =>
  (limit: number, before?: number) =>
    get<T[]>(`${path}?limit=${limit}${before === undefined ? '' : `&before=${before}`}`);

export const runs = paged<api.RunRow>('/runs');
export const submissions = paged<api.Submission>('/submissions');
export const matrix = paged<api.MatrixRow>('/matrix');
export const audit = paged<api.AuditRow>('/audit');

/** What the history is sorted by. */
export type HistoryOrder = 'started' | 'name' | 'elapsed' | 'throughput' | 'p99' | 'failed';

/** What is asked of the history; what is left out is not asked for. */
export interface HistoryQuery {
  text?: string;
  state?: string;
  valid?: boolean;
  evaluation?: number;
  tag?: string;
  sort?: HistoryOrder;
  ascending?: boolean;
  limit?: number;
  offset?: number;
}

export function history(query: HistoryQuery) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(given.map(([key, value]) => [key, String(value)]));
  return get<api.History>(`/history?${text}`);
}
export const remark = (run: number) => get<api.Remark>(`/runs/${run}/remark`);
export const setRemark = (run: number, remark: api.Remark) => json<api.Remark>('PUT', `/runs/${run}/remark`, remark);
/** Where a run's COSBench archive, document or log can be fetched. */
export const runFile = (id: number, file: string) => `${base}/runs/${id}/${file}`;
/** Where a run's report can be fetched. */
export const runReport = (id: number, format: string) => `${base}/runs/${id}/report?format=${format}`;
/** Where an evaluation's report can be fetched. */
export const evaluationReport = (id: number, format: string) => `${base}/evaluations/${id}/report?format=${format}`;

/** An address that the browser is to fetch by itself, with a ticket that is good for that once. Who never logged in needs none. */
export async function ticketed(address: string): Promise<string> {
  if (session.key() === null) return address;
  return (await json<api.Ticket>('POST', '/tickets', { address })).address;
}

/** The stream of events; those of a submission, or overviews only. */
export async function events(submission: number | undefined, signal: AbortSignal) {
  const query = submission === undefined ? '' : `?submission=${submission}`;
  const { body } = await send('GET', `/events${query}`, { headers: { accept: 'text/event-stream' }, signal });
  if (!body) throw new Refused(0, 'The controller sent no events.');
  return body;
}
