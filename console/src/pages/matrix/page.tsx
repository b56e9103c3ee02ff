/** The performance matrix: every operation of every run, filtered, sorted, drawn and saved. */

import { useMemo, useState } from 'preact/hooks';
import type { MatrixRow } from '../../api';
import * as client from '../../client';
import { csv, save } from '../../lib/csv';
import { plural } from '../../lib/format';
import { matches, type Sorting } from '../../lib/order';
import { usePages } from '../../lib/pages';
import { validWord } from '../../parts/badge';
import { Pick, Search } from '../../parts/filter';
import { Failure } from '../../parts/notice';
import { arranged, Table } from '../../parts/table';
import { columns } from './columns';
import { Drawn } from './drawn';
import { metrics } from './metrics';
import './matrix.css';

interface Filters {
  /** Whether what is done around loads is there too. */
  all: boolean;
  search: string;
  sample: string;
  state: string;
  valid: string;
  workers: string;
  evaluation: string;
  arm: string;
  level: string;
}

const first: Filters = {
  ...{ all: false, search: '', sample: '', state: '', valid: '', workers: '' },
  ...{ evaluation: '', arm: '', level: '' },
};

const fits = (row: MatrixRow, { all, search, sample, state, valid, workers, evaluation, arm, level }: Filters) =>
  (all || row.measures) &&
  (!sample || row.sample === sample) &&
  (!state || row.state === state) &&
  (!valid || validWord(row.valid) === valid) &&
  (!workers || row.workers === Number(workers)) &&
  (!evaluation || row.evaluation === Number(evaluation)) &&
  (!arm || row.arm === arm) &&
  (!level || row.level === level) &&
  matches(search, row.name, String(row.run), row.stage, row.work, row.config, row.arm, row.level);

export function MatrixPage() {
  const { rows, done, error } = usePages(client.matrix, (row) => row.run);
  const [filters, setFilters] = useState(first);
  const [sorting, sort] = useState<Sorting | null>(null);
  // What the user chose of the columns; of the others each knows itself.
  const [wanted, want] = useState<ReadonlyMap<string, boolean>>(new Map());
  const [metric, setMetric] = useState('throughput');

  const values = useMemo(() => choices(rows), [rows]);
  const shown = useMemo(() => rows.filter((row) => fits(row, filters)), [rows, filters]);
  // The chosen metric has its column, whatever is hidden.
  const isShown = useMemo(() => {
    const usual = columns.map(({ id, shown: own, value }) => {
      const has = () => shown.some((row) => value?.(row) != null);
      return [id, typeof own === 'function' ? own(shown) : (own ?? has())] as const;
    });
    const all = new Map(usual);
    return (id: string) => wanted.get(id) ?? all.get(id) ?? false;
  }, [shown, wanted]);
  const visible = useMemo(() => columns.filter(({ id }) => isShown(id) || id === metric), [isShown, metric]);
  const drawn = metrics.find(({ id }) => id === metric) ?? metrics[0]!;
  const set = (changes: Partial<Filters>) => setFilters({ ...filters, ...changes });

  const saveShown = () => {
    const sorted = arranged(shown, visible, sorting);
    const body = sorted.map((row) => visible.map((column) => (column.file ?? column.value)?.(row) ?? null));
    save('tidemark-matrix.csv', csv([visible.map((column) => column.title), ...body]));
  };
  return (
    <>
      <div class="page-head">
        <h1>Performance matrix</h1>
        <p class="meta">
          One row per operation of each run. CSV files have times in microseconds and bandwidth in bytes per second.
        </p>
      </div>
      {error && <Failure error={error} />}
      <section class="panel" aria-label="Matrix">
        <div class="filters">
          <Search label="Run, stage or settings" value={filters.search} change={(search) => set({ search })} />
          <Pick
            label="Operation"
            value={filters.sample}
            options={[['', 'all'], ...values.samples]}
            change={(sample) => set({ sample })}
          />
          <Pick
            label="State"
            value={filters.state}
            options={[['', 'all'], ...values.states]}
            change={(state) => set({ state })}
          />
          <Pick
            label="Validity"
            value={filters.valid}
            options={[['', 'all'], 'VALID', 'INVALID', 'not judged']}
            change={(valid) => set({ valid })}
          />
          <Pick
            label="Workers"
            value={filters.workers}
            options={[['', 'all'], ...values.workers]}
            change={(workers) => set({ workers })}
          />
          {(['evaluation', 'arm', 'level'] as const).map(
            (name) =>
              values[name].length > 0 && (
                <Pick
                  key={name}
                  label={titles[name]}
                  value={filters[name]}
                  options={[['', 'all'], ...values[name]]}
                  change={(value) => set({ [name]: value })}
                />
              ),
          )}
          <Pick
            label="Metric"
            value={metric}
            options={metrics.filter((one) => one.drawn).map((one) => [one.id, one.title] as const)}
            change={setMetric}
          />
          <label class="inline">
            <input
              type="checkbox"
              checked={filters.all}
              onChange={(event) => set({ all: event.currentTarget.checked })}
            />
            Include preparation and cleanup
          </label>
          <Columns isShown={isShown} want={(id, on) => want(new Map(wanted).set(id, on))} />
          <span class="row end">
            <small role="status">
              {plural(shown.length, 'row')}
              {!done && ', loading…'}
            </small>
            <button class="small" disabled={shown.length === 0} onClick={saveShown}>
              Save as CSV
            </button>
          </span>
        </div>
        {/* Colours are given out once all rows are there. */}
        {shown.length > 0 && <Drawn key={String(done)} rows={shown} metric={drawn} />}
        <Table
          label="Performance matrix"
          rows={shown}
          columns={visible}
          sorting={sorting}
          sort={sort}
          most={Math.max(360, innerHeight - 240)}
        />
        {done && rows.length === 0 && <p class="empty">No stored runs yet.</p>}
      </section>
    </>
  );
}

const titles = { evaluation: 'Evaluation', arm: 'Arm', level: 'Level' };

/** What there is to choose from. */
function choices(rows: readonly MatrixRow[]) {
  const distinct = (value: (row: MatrixRow) => string) =>
    [...new Set(rows.map(value))].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  return {
    samples: distinct((row) => row.sample),
    states: distinct((row) => row.state),
    workers: distinct((row) => String(row.workers)),
    evaluation: distinct((row) => String(row.evaluation ?? '')).filter(Boolean),
    arm: distinct((row) => row.arm).filter(Boolean),
    level: distinct((row) => row.level).filter(Boolean),
  };
}

function Columns({ isShown, want }: { isShown: (id: string) => boolean; want: (id: string, on: boolean) => void }) {
  return (
    <details class="columns-menu">
      <summary class="button">Columns</summary>
      <div role="group" aria-label="Columns that are shown">
        {columns.map(({ id, title }) => (
          <label key={id} class="inline">
            <input type="checkbox" checked={isShown(id)} onChange={(event) => want(id, event.currentTarget.checked)} />
            {title}
          </label>
        ))}
      </div>
    </details>
  );
}
