/** The columns of the matrix: what a row is about, then its metrics. */

import type { MatrixRow } from '../../api';
import { percent } from '../../lib/format';
import { State, Valid, validWord } from '../../parts/badge';
import { Moment } from '../../parts/moment';
import type { Column } from '../../parts/table';
import { metrics } from './metrics';
import { setting, sizeOrder, sizeWords } from './settings';

type MatrixColumn = Column<MatrixRow> & {
  /** Whether it is shown unless the user says otherwise; null: where a row has a value. */
  shown: boolean | null | ((rows: readonly MatrixRow[]) => boolean);
};

const sizeOf = (row: MatrixRow) => setting(row.config, 'block_size', 'sizes');

const about: MatrixColumn[] = [
  {
    id: 'run',
    title: 'Run',
    number: true,
    shown: true,
    value: (row) => row.run,
    show: (row) => <a href={`/runs/${row.run}`}>{row.run}</a>,
  },
  { id: 'name', title: 'Name', shown: true, value: (row) => row.name },
  {
    id: 'started',
    title: 'Started',
    number: true,
    shown: false,
    value: (row) => row.started_unix_ms,
    show: (row) => <Moment at={row.started_unix_ms} />,
  },
  {
    id: 'evaluation',
    title: 'Evaluation',
    number: true,
    shown: null,
    value: (row) => row.evaluation,
    show: (row) => row.evaluation !== null && <a href={`/evaluations/${row.evaluation}`}>{row.evaluation}</a>,
  },
  { id: 'arm', title: 'Arm', shown: null, value: (row) => row.arm || null },
  { id: 'level', title: 'Level', shown: null, value: (row) => row.level || null },
  {
    id: 'repeat',
    title: 'Repeat',
    number: true,
    shown: null,
    value: (row) => row.repeat || null,
    show: (row) => row.repeat || '–',
  },
  { id: 'state', title: 'State', shown: false, value: (row) => row.state, show: (row) => <State state={row.state} /> },
  {
    id: 'valid',
    title: 'Validity',
    shown: true,
    value: (row) => validWord(row.valid),
    show: (row) => <Valid valid={row.valid} />,
  },
  {
    id: 'stage',
    title: 'Stage',
    shown: (rows) => rows.some(({ stage }) => stage !== rows[0]?.stage),
    value: (row) => row.stage,
  },
  { id: 'work', title: 'Work', shown: false, value: (row) => row.work },
  {
    id: 'operation',
    title: 'Operation',
    shown: true,
    value: (row) => row.operation,
    show: (row) => <b>{row.operation}</b>,
  },
  { id: 'sample', title: 'Type', shown: false, value: (row) => row.sample },
  {
    id: 'weight',
    title: 'Share',
    number: true,
    shown: false,
    value: (row) => row.weight,
    show: (row) => percent(row.weight / 100),
  },
  { id: 'kind', title: 'Purpose', hint: 'What the work is for', shown: false, value: (row) => row.kind },
  {
    id: 'pattern',
    title: 'Pattern',
    shown: null,
    value: (row) => setting(row.config, 'pattern'),
  },
  {
    id: 'size',
    title: 'Size',
    hint: 'Of blocks or objects',
    number: true,
    shown: null,
    value: (row) => sizeOf(row) && sizeOrder(sizeOf(row)!),
    file: sizeOf,
    show: (row) => sizeWords(sizeOf(row) ?? '–'),
  },
  {
    id: 'depth',
    title: 'Depth',
    hint: 'Operations of each worker in flight at once',
    number: true,
    shown: null,
    value: (row) => (setting(row.config, 'pattern') || row.depth > 1 ? row.depth : null),
    show: (row) => row.depth,
  },
  { id: 'workers', title: 'Workers', number: true, shown: true, value: (row) => row.workers },
  { id: 'drivers', title: 'Drivers', number: true, shown: false, value: (row) => row.drivers },
];

export const columns: MatrixColumn[] = [
  ...about,
  ...metrics.map(({ id, title, shown, value, format }): MatrixColumn => ({
    id,
    title,
    number: true,
    shown,
    value,
    show: (row) => {
      const number = value(row);
      return number === null ? '–' : format(number);
    },
  })),
  {
    id: 'config',
    title: 'Settings',
    shown: false,
    value: (row) => row.config,
    show: (row) => <code title={row.config}>{row.config}</code>,
  },
];
