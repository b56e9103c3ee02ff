/** All stored evaluations. */

import { useState } from 'preact/hooks';
import type { EvaluationRow } from '../../api';
import * as client from '../../client';
import { matches, type Sorting } from '../../lib/order';
import { plural } from '../../lib/format';
import { useResource } from '../../lib/resource';
import { State, Valid, validWord } from '../../parts/badge';
import { Search } from '../../parts/filter';
import { Moment } from '../../parts/moment';
import { Failure } from '../../parts/notice';
import { type Column, Table } from '../../parts/table';

const address = (one: EvaluationRow) => `/evaluations/${one.id}`;

const columns: Column<EvaluationRow>[] = [
  {
    id: 'id',
    title: 'Number',
    number: true,
    value: (one) => one.id,
    show: (one) => <a href={address(one)}>{one.id}</a>,
  },
  { id: 'name', title: 'Name', value: (one) => one.name, show: (one) => <a href={address(one)}>{one.name}</a> },
  {
    id: 'started',
    title: 'Started',
    number: true,
    value: (one) => one.started_unix_ms,
    show: (one) => <Moment at={one.started_unix_ms} />,
  },
  { id: 'state', title: 'State', value: (one) => one.state, show: (one) => <State state={one.state} /> },
  { id: 'valid', title: 'Validity', value: (one) => validWord(one.valid), show: (one) => <Valid valid={one.valid} /> },
  { id: 'runs', title: 'Runs', number: true, value: (one) => one.runs },
  {
    id: 'headline',
    title: 'Verdict',
    value: (one) => one.headline,
    show: (one) => <span title={one.headline}>{one.headline}</span>,
  },
];

export function EvaluationsPage() {
  const { data = [], loading, error, reload } = useResource('evaluations', client.evaluations);
  const [search, setSearch] = useState('');
  const [sorting, sort] = useState<Sorting | null>(null);
  const shown = data.filter((one) => matches(search, one.name, one.headline, String(one.id)));
  return (
    <>
      <div class="page-head">
        <h1>Evaluations</h1>
        <p class="meta">
          An evaluation puts loads on several things and compares them. Submit a document with arms to begin one.
        </p>
      </div>
      {error && <Failure error={error} again={reload} />}
      <section class="panel" aria-label="Evaluations">
        <div class="filters">
          <Search label="Name or verdict" value={search} change={setSearch} />
          <small class="end">{loading ? 'Loading…' : plural(shown.length, 'evaluation')}</small>
        </div>
        {!loading && !error && data.length === 0 ? (
          <p class="empty">No stored evaluations yet.</p>
        ) : (
          <Table
            label="Evaluations"
            rows={shown}
            columns={columns}
            id={(one) => one.id}
            sorting={sorting}
            sort={sort}
            most={640}
          />
        )}
      </section>
    </>
  );
}
