/** The drivers: state, load, clock uncertainty. A table, so that a hundred of them fit. */

import { useMemo, useState } from 'preact/hooks';
import type { Driver, DriverState } from '../../api';
import { bandwidth, duration, fullMoment, latency, memory, plural } from '../../lib/format';
import { matches, type Sorting } from '../../lib/order';
import { useOperator } from '../../lib/session';
import { State } from '../../parts/badge';
import { Load } from '../../parts/bar';
import { Pick, Search } from '../../parts/filter';
import { Panel } from '../../parts/panel';
import { type Column, Table } from '../../parts/table';
import { Join } from './join';

/** Worst first. */
const states: DriverState[] = ['gone', 'silent', 'ending', 'busy', 'idle'];

const columns: Column<Driver>[] = [
  { id: 'name', title: 'Driver', value: (one) => one.name, show: (one) => <span title={about(one)}>{one.name}</span> },
  {
    id: 'state',
    title: 'State',
    value: (one) => states.indexOf(one.state),
    show: (one) => (
      <>
        <State state={one.state} />{' '}
        {(one.state === 'silent' || one.state === 'gone') && <small>for {duration(one.silent_ms)}</small>}
        {one.ending && (
          <small title="Nobody waits for this run any more. It has a few seconds to end, and is killed then.">
            still {one.ending.submission === null ? 'an earlier run' : `w${one.ending.submission}`}, for{' '}
            {duration(one.ending.ms)}
          </small>
        )}
      </>
    ),
  },
  {
    id: 'for',
    title: 'Submission',
    value: (one) => one.submission,
    show: (one) => one.submission !== null && <a href={`/w/${one.submission}`}>w{one.submission}</a>,
  },
  { id: 'cpu', title: 'CPU', value: (one) => one.cpu_busy, show: (one) => <Load share={one.cpu_busy} /> },
  { id: 'cores', title: 'Cores', number: true, value: (one) => one.cores },
  {
    id: 'memory',
    title: 'Memory',
    number: true,
    value: (one) => one.memory_used_bytes,
    show: (one) => `${memory(one.memory_used_bytes)} of ${memory(one.memory_bytes)}`,
  },
  {
    id: 'in',
    title: 'Received',
    number: true,
    value: (one) => one.received_per_s,
    show: (one) => bandwidth(one.received_per_s),
  },
  { id: 'out', title: 'Sent', number: true, value: (one) => one.sent_per_s, show: (one) => bandwidth(one.sent_per_s) },
  {
    id: 'clock',
    title: 'Clock ±',
    hint: 'Uncertainty of its clock offset: half the round-trip time',
    number: true,
    value: (one) => one.clock_error_us,
    show: (one) => (one.clock_error_us === null ? '–' : latency(one.clock_error_us)),
  },
  { id: 'version', title: 'Version', value: (one) => one.version },
];

const about = (one: Driver) =>
  `${one.host} (${one.address})\n${one.cores} × ${one.cpu}\njoined ${fullMoment(one.joined_unix_ms)}`;

export function Drivers({ drivers }: { drivers: Driver[] }) {
  const operator = useOperator();
  const [search, setSearch] = useState('');
  const [state, setState] = useState('');
  const [sorting, sort] = useState<Sorting | null>(null);
  const rows = useMemo(
    () => drivers.filter((one) => (!state || one.state === state) && matches(search, one.name, one.host, one.address)),
    [drivers, search, state],
  );
  const counts = states
    .map((state) => [state, drivers.filter((one) => one.state === state).length] as const)
    .filter(([, number]) => number > 0);
  return (
    <Panel
      title="Drivers"
      flush
      aside={
        <span class="row">
          {counts.map(([state, number]) => (
            <span key={state}>
              {number} <State state={state} />
            </span>
          ))}
        </span>
      }
    >
      {drivers.length === 0 ? (
        <div class="empty">
          <p>No drivers yet: runs wait until one joins.</p>
          <Join drivers={drivers} />
        </div>
      ) : (
        <>
          <div class="filters">
            <Search label="Name, host or address" value={search} change={setSearch} />
            <Pick label="State" value={state} options={[['', 'all'], ...states]} change={setState} />
            <small class="end">{plural(rows.length, 'driver')}</small>
          </div>
          <Table
            label="Drivers"
            rows={rows}
            columns={columns}
            id={(one) => one.name}
            sorting={sorting}
            sort={sort}
            most={480}
          />
          {operator && (
            <details class="join">
              <summary>Add a driver</summary>
              <Join drivers={drivers} />
            </details>
          )}
        </>
      )}
    </Panel>
  );
}
