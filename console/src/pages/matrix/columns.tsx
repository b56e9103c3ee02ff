/** The columns of the matrix: what a row is about, then its metrics. */

import type { MatrixRow } from '../../api';
import { percent } from '../../lib/format';
import { State, Valid, validWord } from '../../parts/badge';
import { Moment } from '../../parts/moment';
import type { Column } from '../../parts/table';
import { metrics } from './metrics';

type MatrixColumn = Column<MatrixRow> & { shown: boolean };

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
  { id: 'state', title: 'State', shown: false, value: (row) => row.state, show: (row) => <State state={row.state} /> },
  {
    id: 'valid',
    title: 'Validity',
    shown: true,
    value: (row) => validWord(row.valid),
    show: (row) => <Valid valid={row.valid} />,
  },
  { id: 'stage', title: 'Stage', shown: true, value: (row) => row.stage },
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
  { id: 'workers', title: 'Workers', number: true, shown: true, value: (row) => row.workers },
  { id: 'drivers', title: 'Drivers', number: true, shown: true, value: (row) => row.drivers },
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
