/** All stored runs: found by name, state and verdict, and put into two groups to be compared. */

import { useMemo, useState } from 'preact/hooks';
import type { RunRow } from '../../api';
import * as client from '../../client';
import { count, duration, plural } from '../../lib/format';
import { matches, type Sorting } from '../../lib/order';
import { usePages } from '../../lib/pages';
import { State, Valid, validWord } from '../../parts/badge';
import { Pick, Search } from '../../parts/filter';
import { Moment } from '../../parts/moment';
import { Failure } from '../../parts/notice';
import { type Column, Table } from '../../parts/table';
import { CompareBar, Marks, useGroups } from './groups';
import './runs.css';

const columns: Column<RunRow>[] = [
  {
    id: 'id',
    title: 'Run',
    number: true,
    value: (run) => run.id,
    show: (run) => <a href={`/runs/${run.id}`}>{run.id}</a>,
  },
  { id: 'name', title: 'Name', value: (run) => run.name, show: (run) => <a href={`/runs/${run.id}`}>{run.name}</a> },
  {
    id: 'started',
    title: 'Started',
    number: true,
    value: (run) => run.started_unix_ms,
    show: (run) => <Moment at={run.started_unix_ms} />,
  },
  { id: 'state', title: 'State', value: (run) => run.state, show: (run) => <State state={run.state} /> },
  { id: 'valid', title: 'Validity', value: (run) => validWord(run.valid), show: (run) => <Valid valid={run.valid} /> },
  {
    id: 'took',
    title: 'Duration',
    number: true,
    value: (run) => run.elapsed_ms,
    show: (run) => duration(run.elapsed_ms),
  },
  {
    id: 'operations',
    title: 'Operations',
    number: true,
    value: (run) => run.operations,
    show: (run) => count(run.operations),
  },
  {
    id: 'failed',
    title: 'Failed',
    number: true,
    value: (run) => run.failed,
    show: (run) => <span class={run.failed > 0 ? 'bad' : ''}>{count(run.failed)}</span>,
  },
  {
    id: 'evaluation',
    title: 'Evaluation',
    value: (run) => run.evaluation,
    show: (run) => run.evaluation !== null && <a href={`/evaluations/${run.evaluation}`}>{run.evaluation}</a>,
  },
  {
    id: 'headline',
    title: 'Result',
    value: (run) => run.headline,
    show: (run) => <span title={run.headline}>{run.headline}</span>,
  },
];

export function RunsPage() {
  const { rows, done, error } = usePages(client.runs, (run) => run.id);
  const [search, setSearch] = useState('');
  const [state, setState] = useState('');
  const [valid, setValid] = useState('');
  const [sorting, sort] = useState<Sorting | null>(null);
  const groups = useGroups();

  const shown = useMemo(
    () =>
      rows.filter(
        (run) =>
          (!state || run.state === state) &&
          (!valid || validWord(run.valid) === valid) &&
          matches(search, run.name, String(run.id), run.headline),
      ),
    [rows, search, state, valid],
  );
  const withMarks = useMemo<Column<RunRow>[]>(
    () => [{ id: 'mark', title: 'Compare', show: (run) => <Marks run={run.id} groups={groups} /> }, ...columns],
    [groups],
  );
  return (
    <>
      <div class="page-head">
        <h1>Runs</h1>
        <CompareBar groups={groups} />
      </div>
      {error && <Failure error={error} />}
      <section class="panel" aria-label="Runs">
        <div class="filters">
          <Search label="Name, number or result" value={search} change={setSearch} />
          <Pick
            label="State"
            value={state}
            options={[['', 'all'], 'completed', 'failed', 'interrupted', 'running']}
            change={setState}
          />
          <Pick
            label="Validity"
            value={valid}
            options={[['', 'all'], 'VALID', 'INVALID', 'not judged']}
            change={setValid}
          />
          <small class="end" role="status">
            {plural(shown.length, 'run')}
            {!done && ', loading…'}
          </small>
        </div>
        {done && rows.length === 0 ? (
          <p class="empty">No stored runs yet.</p>
        ) : (
          <Table
            label="Runs"
            rows={shown}
            columns={withMarks}
            id={(run) => run.id}
            sorting={sorting}
            sort={sort}
            selected={(run) => groups.a.includes(run.id) || groups.b.includes(run.id)}
            most={Math.max(360, innerHeight - 260)}
          />
        )}
      </section>
    </>
  );
}
