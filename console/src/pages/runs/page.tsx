/** All stored runs, and what failed before it was one: found, sorted and paged by the controller, marked and compared here. */

import { useEffect, useMemo, useState } from 'preact/hooks';
import type { HistoryRow } from '../../api';
import * as client from '../../client';
import { count, duration, latency, plural, rate } from '../../lib/format';
import { next, type Sorting } from '../../lib/order';
import { useResource } from '../../lib/resource';
import { go } from '../../lib/router';
import { State, Valid } from '../../parts/badge';
import { Pick, Search } from '../../parts/filter';
import { Moment } from '../../parts/moment';
import { Failure } from '../../parts/notice';
import { Spark } from '../../parts/spark';
import { type Column, Table } from '../../parts/table';
import type { PageProps } from '../../routes';
import { Bulk } from './bulk';
import { useGroups } from './groups';
import { place } from './place';
import { fromAddress, pageSize, type Query, toAddress, toHistory } from './query';
import './runs.css';

/** Pause in typing after which the controller is asked, milliseconds. */
const pause = 250;

/** Columns by which the controller sorts. */
const sorted = (order: client.HistoryOrder, number = true) => ({ id: order, number, value: () => null });

const columns: Column<HistoryRow>[] = [
  {
    id: 'run',
    title: 'Run',
    number: true,
    show: ({ run, submission }) =>
      run !== null ? <a href={`/runs/${run}`}>{run}</a> : <a href={`/w/${submission}`}>w{submission}</a>,
  },
  {
    ...sorted('name', false),
    title: 'Name',
    show: ({ run, submission, name, figures, reason, remark }) => (
      <span class="named" title={figures?.load || reason}>
        <a href={run !== null ? `/runs/${run}` : `/w/${submission}`}>{name}</a>
        {remark.tags.map((tag) => (
          <a key={tag} class="tag" href={`/runs?tag=${encodeURIComponent(tag)}`}>
            {tag}
          </a>
        ))}
        {remark.note && (
          <span role="img" aria-label={`Note: ${remark.note}`} title={remark.note}>
            ✎
          </span>
        )}
        {figures?.load && <small> {figures.load}</small>}
        {run === null && reason && <small class="bad"> {reason}</small>}
      </span>
    ),
  },
  {
    ...sorted('throughput'),
    title: 'Throughput',
    show: ({ figures }) => (figures && figures.throughput > 0 ? rate(figures.throughput) : '–'),
  },
  {
    ...sorted('p99'),
    title: 'p99',
    hint: '99th percentile of the response time, all operations together',
    show: ({ figures }) => (figures?.p99_us != null ? latency(figures.p99_us) : '–'),
  },
  {
    id: 'shape',
    title: 'Over time',
    show: ({ figures, name }) =>
      figures && figures.shape.length > 1 ? (
        <Spark values={figures.shape} label={`Throughput of ${name} over time`} height={22} />
      ) : null,
  },
  {
    id: 'state',
    title: 'State',
    show: ({ state, valid, run, reason }) => (
      <span class="row states" title={reason}>
        {(state !== 'completed' || valid === null) && <State state={state} />}
        {run !== null && valid !== null && <Valid valid={valid} />}
      </span>
    ),
  },
  {
    ...sorted('failed'),
    title: 'Failed',
    show: ({ failed }) => <span class={failed > 0 ? 'bad' : ''}>{count(failed)}</span>,
  },
  { ...sorted('started'), title: 'Started', show: (row) => <Moment at={row.started_unix_ms} /> },
  {
    id: 'place',
    title: 'Evaluation',
    show: (row) =>
      row.evaluation !== null && (
        <span class="named" title={place(row)}>
          <a href={`/evaluations/${row.evaluation}`}>{row.evaluation_name || row.evaluation}</a> {place(row)}
        </span>
      ),
  },
  { ...sorted('elapsed'), title: 'Took', show: (row) => duration(row.elapsed_ms) },
];

export function RunsPage({ address }: PageProps) {
  const query = fromAddress(address.searchParams);
  const shown = (change: Partial<Query>) => go(toAddress({ ...query, page: 1, ...change }), true);
  const { data, error, loading, reload } = useResource(`history ${toAddress(query)}`, () =>
    client.history(toHistory(query)),
  );
  // What was there stays until the next page has come.
  const [kept, keep] = useState(data);
  useEffect(() => data && keep(data), [data]);
  const [picked, pick] = useState<ReadonlyMap<number, HistoryRow>>(new Map());
  const groups = useGroups(Number(address.searchParams.get('a')) || null);
  const rows = kept?.rows ?? [];
  const toggle = (row: HistoryRow & { run: number }) => {
    const others = new Map(picked);
    if (!others.delete(row.run)) others.set(row.run, row);
    pick(others);
  };
  const marked = useMemo<Column<HistoryRow>[]>(
    () => [
      {
        id: 'mark',
        title: '',
        show: (row) =>
          row.run !== null && (
            <span class="marks">
              <input
                type="checkbox"
                aria-label={`Select run ${row.run}`}
                checked={picked.has(row.run)}
                onChange={() => toggle({ ...row, run: row.run! })}
              />
              {(['a', 'b'] as const).map(
                (group) => groups[group].includes(row.run!) && <b key={group}>{group.toUpperCase()}</b>,
              )}
            </span>
          ),
      },
      ...columns,
    ],
    [picked, groups],
  );
  const total = kept?.total ?? 0;
  const sorting: Sorting = { column: query.sort, descending: !query.ascending };
  const sort = ({ column }: Sorting) => {
    const turned = next(sorting, column, column !== 'name');
    shown({ sort: column as client.HistoryOrder, ascending: !turned.descending });
  };
  return (
    <>
      <div class="page-head">
        <h1>Runs</h1>
      </div>
      {error && <Failure error={error} again={reload} />}
      <section class="panel" aria-label="Runs">
        <Filters query={query} tags={kept?.tags ?? []} shown={shown}>
          <small class="end" role="status">
            {plural(total, 'run')}
            {loading && ', loading…'}
          </small>
        </Filters>
        <Bulk
          picked={picked}
          groups={groups}
          pick={pick}
          page={rows}
          changed={() => {
            pick(new Map());
            reload();
          }}
        />
        {kept && rows.length === 0 ? (
          <p class="empty">
            {toAddress(query) === '/runs' ? 'No stored runs yet.' : 'No run fits.'}{' '}
            {toAddress(query) !== '/runs' && <a href="/runs">Show all</a>}
          </p>
        ) : (
          <Table
            label="Runs"
            rows={rows}
            columns={marked}
            id={(row) => row.run ?? `w${row.submission}`}
            sorting={sorting}
            sort={sort}
            arranged
            selected={(row) => row.run !== null && picked.has(row.run)}
            most={Math.max(360, innerHeight - 300)}
          />
        )}
        {total > pageSize && (
          <Pager page={query.page} pages={Math.ceil(total / pageSize)} total={total} turn={(page) => shown({ page })} />
        )}
      </section>
    </>
  );
}

interface FiltersProps {
  query: Query;
  tags: readonly string[];
  shown: (change: Partial<Query>) => void;
  children: preact.ComponentChildren;
}

function Filters({ query, tags, shown, children }: FiltersProps) {
  const [text, setText] = useState(query.text);
  useEffect(() => setText(query.text), [query.text]);
  useEffect(() => {
    if (text === query.text) return;
    const timer = setTimeout(() => shown({ text }), pause);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <div class="filters">
      <Search label="Name, number, load, arm, tag or note" value={text} change={setText} />
      <Pick
        label="State"
        value={query.state}
        options={[['', 'all'], 'completed', 'failed', 'interrupted', 'cancelled', 'running']}
        change={(state) => shown({ state })}
      />
      <Pick
        label="Validity"
        value={query.valid}
        options={[
          ['', 'all'],
          ['true', 'VALID'],
          ['false', 'INVALID'],
        ]}
        change={(valid) => shown({ valid: valid as Query['valid'] })}
      />
      {(tags.length > 0 || query.tag) && (
        <Pick
          label="Tag"
          value={query.tag}
          options={[['', 'all'], ...new Set([...tags, ...(query.tag ? [query.tag] : [])])]}
          change={(tag) => shown({ tag })}
        />
      )}
      {query.evaluation && (
        <button class="small" onClick={() => shown({ evaluation: '' })}>
          Evaluation {query.evaluation} only ✕
        </button>
      )}
      {children}
    </div>
  );
}

interface PagerProps {
  page: number;
  pages: number;
  total: number;
  turn: (page: number) => void;
}

function Pager({ page, pages, total, turn }: PagerProps) {
  const first = (page - 1) * pageSize + 1;
  return (
    <nav class="pager row" aria-label="Pages of runs">
      <button class="small" disabled={page <= 1} onClick={() => turn(1)}>
        First
      </button>
      <button class="small" disabled={page <= 1} onClick={() => turn(page - 1)}>
        Previous
      </button>
      <span>
        {count(first)} to {count(Math.min(total, first + pageSize - 1))} of {count(total)}
      </span>
      <button class="small" disabled={page >= pages} onClick={() => turn(page + 1)}>
        Next
      </button>
      <button class="small" disabled={page >= pages} onClick={() => turn(pages)}>
        Last
      </button>
    </nav>
  );
}
