/** Who did what: for operators. */

import { useMemo, useState } from 'preact/hooks';
import type { AuditRow } from '../../api';
import * as client from '../../client';
import { plural } from '../../lib/format';
import { matches, type Sorting } from '../../lib/order';
import { usePages } from '../../lib/pages';
import { Pick, Search } from '../../parts/filter';
import { Moment } from '../../parts/moment';
import { Failure } from '../../parts/notice';
import { type Column, Table } from '../../parts/table';

const columns: Column<AuditRow>[] = [
  { id: 'when', title: 'When', number: true, value: (row) => row.unix_ms, show: (row) => <Moment at={row.unix_ms} /> },
  { id: 'by', title: 'User', value: (row) => row.by, show: (row) => row.by || <span class="meta">–</span> },
  { id: 'what', title: 'Action', value: (row) => row.what },
  {
    id: 'detail',
    title: 'Details',
    value: (row) => row.detail,
    show: (row) => <span title={row.detail}>{row.detail}</span>,
  },
  { id: 'address', title: 'From', value: (row) => row.address },
];

export function AuditPage() {
  const { rows, done, error } = usePages(client.audit, (row) => row.id);
  const [search, setSearch] = useState('');
  const [what, setWhat] = useState('');
  const [sorting, sort] = useState<Sorting | null>(null);
  const kinds = useMemo(() => [...new Set(rows.map((row) => row.what))].sort(), [rows]);
  const shown = useMemo(
    () =>
      rows.filter((row) => (!what || row.what === what) && matches(search, row.by, row.address, row.detail, row.what)),
    [rows, what, search],
  );
  return (
    <>
      <div class="page-head">
        <h1>Audit log</h1>
      </div>
      {error && <Failure error={error} />}
      <section class="panel" aria-label="Audit log">
        <div class="filters">
          <Search label="User, address or details" value={search} change={setSearch} />
          <Pick label="Action" value={what} options={[['', 'all'], ...kinds]} change={setWhat} />
          <small class="end" role="status">
            {plural(shown.length, 'entry', 'entries')}
            {!done && ', loading…'}
          </small>
        </div>
        <Table
          label="Audit log"
          rows={shown}
          columns={columns}
          id={(row) => row.id}
          sorting={sorting}
          sort={sort}
          most={680}
        />
      </section>
    </>
  );
}
