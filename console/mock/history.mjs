/** What was measured before: runs, the matrix, evaluations, comparisons, the audit log. */

import { chance } from './chance.mjs';

const minute = 60_000;
const started = Date.now();
const names = ['web-4k', 'web-64k', 'archive-8m', 'oltp-mixed', 'whitepaper-4k', 'backup-nightly', 'ceph-rgw-70-30'];
const kinds = ['read', 'write', 'delete', 'list'];

/** Numbers of one operation of one run, from its place alone. */
export function numbers(run, index) {
  const random = chance(run * 7 + index);
  const workers = [8, 16, 32, 64, 128][run % 5];
  const throughput = (9000 * (0.7 + random() * 0.6) * Math.sqrt(workers / 32)) / (index * 2 + 1);
  const mean = (workers / throughput) * 1e6 * (0.3 + index * 0.2);
  const percentiles = [0.9, 1, 1.3, 1.7, 2.1, 3.6, 7, 11, 24].map((times) => mean * times * (0.9 + random() * 0.2));
  percentiles.sort((a, b) => a - b);
  const ok = Math.round(throughput * 60);
  const failed = run % 37 === 0 ? Math.round(ok * 0.002) : 0;
  const size = index < 2 ? 65_536 : 0;
  return { workers, throughput, mean, percentiles, ok, failed, size };
}

export function runRow(id) {
  const random = chance(id);
  const first = numbers(id, 0);
  const state = id % 41 === 0 ? 'failed' : id % 53 === 0 ? 'interrupted' : 'completed';
  return {
    id,
    name: `${names[id % names.length]}${id % 3 === 0 ? '-repeat' : ''}`,
    started_unix_ms: started - (1001 - id) * 97 * minute,
    elapsed_ms: 60_000 + Math.round(random() * 600_000),
    state,
    valid: state === 'interrupted' ? null : id % 19 !== 0,
    operations: first.ok * 2,
    failed: first.failed,
    headline: `main: 70 % read / 30 % write, ${first.workers} workers: ${Math.round(first.throughput * 1.4).toLocaleString('en-US')} op/s, read p99 ${(first.percentiles[5] / 1000).toFixed(2)} ms`,
    evaluation: id % 25 === 0 ? id / 25 : null,
    submission: id > 900 ? id - 900 : null,
  };
}

export const runs = Array.from({ length: 1000 }, (_, index) => runRow(1000 - index));

/** A row of the matrix; numbers of a run and an operation, and what it is about. */
function matrixRow(run, index, about) {
  const { workers, throughput, mean, percentiles, ok, failed, size } = numbers(run.id, index);
  return {
    run: run.id,
    name: run.name,
    started_unix_ms: run.started_unix_ms,
    state: run.state,
    valid: run.valid,
    stage: 's3-main',
    work: 'main',
    kind: 'normal',
    measures: true,
    depth: 1,
    operation: kinds[index],
    sample: kinds[index],
    weight: [60, 20, 15, 5][index],
    workers,
    drivers: 1 + (run.id % 4),
    ok,
    failed,
    bytes: ok * size,
    throughput,
    bandwidth: throughput * size,
    mean_us: mean,
    percentiles_us: percentiles,
    success_ratio: ok / (ok + failed),
    config: 'containers=u(1,4);objects=u(1,1000);sizes=c(64)KB',
    ...{ evaluation: null, arm: '', level: '', repeat: 0 },
    ...about,
  };
}

const onVolumes = (run) => run % 9 === 8;

/** Every ninth run is on volumes. Everything is prepared by writes, under whatever name. */
export const matrix = runs.flatMap((run) => {
  const fill = {
    kind: 'prepare',
    measures: false,
    stage: 's1-prepare',
    weight: 100,
    operation: 'write',
    sample: 'write',
  };
  if (!onVolumes(run.id)) return [matrixRow(run, 1, fill), ...kinds.map((_, index) => matrixRow(run, index, {}))];
  const [depth, pattern] = [[1, 8, 32][run.id % 3], ['randread', 'randrw', 'write'][run.id % 2]];
  const config = `pattern=${pattern};block_size=${run.id % 4 ? 4 : 64} KiB;depth=${depth};clients=4`;
  return [
    matrixRow(run, 1, { ...fill, config: 'block_size=1 MiB;depth=8;clients=4', depth: 8 }),
    ...[0, ...(pattern === 'randrw' ? [1] : [])].map((index) =>
      matrixRow(run, index, { name: `oltp-${pattern}`, config, depth, workers: 4, weight: 100 }),
    ),
  ];
});

export const evaluations = Array.from({ length: 24 }, (_, index) => 24 - index).map((id) => ({
  id,
  name: ['disk-against-memory', 'rgw-knee', 'ec-against-replica'][id % 3],
  started_unix_ms: started - (25 - id) * 1440 * minute,
  state: id === 24 ? 'running' : id % 11 === 0 ? 'failed' : 'completed',
  valid: id === 24 ? null : id % 7 !== 0,
  headline: id === 24 ? '' : 'memory is better than disk: 2.41 times the throughput (95 % interval 2.20 to 2.64)',
  runs: id === 24 ? 3 : 6 + (id % 4) * 6,
}));

export const audit = Array.from({ length: 400 }, (_, index) => 400 - index).map((id) => ({
  id,
  unix_ms: started - (401 - id) * 7 * minute,
  by: ['anna', 'ci', '', 'boris'][id % 4],
  address: `10.0.0.${(id % 30) + 2}:51${String(id).padStart(3, '0')}`,
  what: ['submit', 'login', 'driver joined', 'cancel', 'change', 'refused', 'delete run'][id % 7],
  detail: [
    'submission 107, priority 0',
    'operator',
    'driver-017',
    'submission 98, at once',
    'submission 101, priority 5',
    'wrong token',
    'run 311',
  ][id % 7],
}));

/** What a group of runs did of an operation. */
function side(runs, index) {
  const all = runs.map((run) => numbers(run, index));
  const mean = (of) => all.reduce((sum, one) => sum + of(one), 0) / all.length;
  const shares = [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 0.9999, 1];
  const times = [0.4, 0.55, 0.65, 0.74, 0.82, 0.9, 1, 1.14, 1.3, 1.7, 2.1, 3.6, 7, 11, 24];
  return {
    config: 'containers=u(1,4);objects=u(1,1000);sizes=c(64)KB',
    workers: all[0].workers,
    ok: all.reduce((sum, one) => sum + one.ok, 0),
    failed: all.reduce((sum, one) => sum + one.failed, 0),
    throughput: mean((one) => one.throughput),
    bandwidth: mean((one) => one.throughput * one.size),
    mean_us: mean((one) => one.mean),
    percentiles_us: shares.map((share, at) => [share, mean((one) => one.mean) * times[at]]),
    runs: runs.map((run) => {
      const random = chance(run * 13 + index);
      const { throughput, percentiles } = numbers(run, index);
      const dip = 20 + (run % 20);
      return {
        run,
        seconds: Array.from({ length: 65 }, (_, at) => ({
          at,
          throughput: throughput * (0.94 + random() * 0.12) * (at > dip && at < dip + 5 ? 0.5 : 1),
          p99_us: percentiles[5] * (0.85 + random() * 0.3) * (at > dip && at < dip + 5 ? 2.2 : 1),
        })),
      };
    }),
  };
}

export function comparison(a, b, margin) {
  if (a.some(onVolumes) !== b.some(onVolumes)) {
    const named = (runs) => (runs.some(onVolumes) ? 'randread' : 'read, write');
    const only = (runs, side) =>
      (runs.some(onVolumes) ? ['randread'] : ['read', 'write']).map((operation) => ({
        load: '',
        operation,
        a: null,
        b: null,
        ...side,
      }));
    return {
      outcome: 'not tested',
      sentence: `Nothing comparable: A measured ${named(a)}; B measured ${named(b)}. Choose runs that measured the same operations.`,
      comparable: false,
      margin,
      invalid: [],
      rows: [],
      operations: [...only(a, { a: side(a, 0) }), ...only(b, { b: side(b, 0) })],
    };
  }
  const rows = compared(a, b, margin);
  const better = { better: 'better', worse: 'worse', 'too few repeats': 'not tested' };
  const outcome = better[rows[0].outcome] ?? (margin ? rows[0].outcome : 'cannot tell');
  return {
    outcome,
    sentence: `Runs ${b.join(', ')} against ${a.join(', ')}: throughput is ${rows[0].ratio.toFixed(2)} times as high: ${outcome}.`,
    comparable: true,
    margin,
    invalid: [...a, ...b]
      .filter((run) => run % 19 === 0)
      .map((run) => `run ${run} is INVALID: the load generator was saturated`),
    rows,
    operations: kinds.map((operation, index) => ({ load: '', operation, a: side(a, index), b: side(b, index) })),
  };
}

/** The metrics over all operations, judged. */
function compared(a, b, margin) {
  const mean = (runs, of) => runs.reduce((sum, run) => sum + of(numbers(run, 0)), 0) / runs.length;
  const metrics = [
    ['throughput', 'operations_per_second', (of) => of.throughput, true],
    ['mean response time', 'microseconds', (of) => of.mean, false],
    ['p99 response time', 'microseconds', (of) => of.percentiles[5], false],
  ];
  return metrics.map(([metric, unit, of, more]) => {
    const [one, other] = [mean(a, of), mean(b, of)];
    const ratio = other / one;
    const repeats = a.length > 1 && b.length > 1;
    const same = margin ? Math.abs(ratio - 1) < margin - 0.06 : ratio * 0.94 < 1 && ratio * 1.06 > 1;
    const outcome = !repeats
      ? 'too few repeats'
      : same
        ? margin
          ? 'equal within the margin'
          : 'cannot tell below 9.0 %'
        : more === ratio > 1
          ? 'better'
          : 'worse';
    return {
      load: 'main',
      metric,
      unit,
      a: one,
      b: other,
      ratio,
      interval: repeats ? [ratio * 0.94, ratio * 1.06] : null,
      detectable: repeats ? 0.09 : null,
      outcome,
    };
  });
}

const arms = ['disk', 'memory'];

/** What users wrote, by run. */
const remarks = new Map([
  [1000, { note: 'after the upgrade of the gateway', tags: ['nightly', 'upgrade'] }],
  [993, { note: '', tags: ['nightly'] }],
]);
export const remark = (run) => remarks.get(run) ?? { note: '', tags: [] };
export const setRemark = (run, remark) => (remarks.set(run, remark), remark);

/** A run as the history tells it. */
function historyRow(run) {
  const random = chance(run.id * 3);
  const first = numbers(run.id, 0);
  const member = run.evaluation !== null;
  return {
    run: run.id,
    submission: run.submission,
    name: run.name,
    started_unix_ms: run.started_unix_ms,
    elapsed_ms: run.elapsed_ms,
    state: run.state,
    reason: '',
    valid: run.valid,
    headline: run.headline,
    operations: run.operations,
    failed: run.failed,
    figures: {
      load: `70 % read / 30 % write, ${first.workers} workers`,
      throughput: first.throughput * 1.4,
      bandwidth: first.throughput * first.size,
      p50_us: first.percentiles[0],
      p99_us: first.percentiles[5],
      shape: Array.from({ length: 40 }, (_, at) => first.throughput * (at % 17 === 9 ? 0.4 : 0.85 + random() * 0.3)),
    },
    evaluation: run.evaluation,
    evaluation_name: member ? 'rgw-knee' : '',
    arm: member ? arms[run.id % 2] : '',
    load: member ? 'web' : '',
    level: member ? `workers ${first.workers}` : '',
    repeat: member ? 1 + (run.id % 3) : 0,
    remark: remark(run.id),
  };
}

/** What ended before it had a run. */
const without = [
  {
    ...historyRow(runRow(1)),
    run: null,
    submission: 96,
    name: 'wrong-endpoint',
    started_unix_ms: started - 3 * minute,
    elapsed_ms: 0,
    state: 'failed',
    reason: 'the target does not answer: connection refused (10.0.0.9:7480)',
    valid: null,
    operations: 0,
    failed: 0,
    figures: null,
    evaluation: null,
  },
];

const orders = {
  started: (row) => row.started_unix_ms,
  name: (row) => row.name,
  elapsed: (row) => row.elapsed_ms,
  throughput: (row) => row.figures?.throughput ?? null,
  p99: (row) => row.figures?.p99_us ?? null,
  failed: (row) => row.failed,
};

export function historyPage(query) {
  const text = (query.get('text') ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  const is = (key, value) => !query.get(key) || query.get(key) === String(value);
  const found = [...without, ...runs.map(historyRow)].filter((row) => {
    const words = [row.name, row.figures?.load, row.arm, row.level, row.remark.note, ...row.remark.tags].join(' ');
    const matches = text.every((word) => words.toLowerCase().includes(word) || String(row.run) === word);
    const tagged = !query.get('tag') || row.remark.tags.includes(query.get('tag'));
    return matches && tagged && is('state', row.state) && is('valid', row.valid) && is('evaluation', row.evaluation);
  });
  const key = orders[query.get('sort') ?? 'started'];
  const way = query.get('ascending') === 'true' ? 1 : -1;
  found.sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    if (x === null || y === null) return Number(x === null) - Number(y === null);
    return (x < y ? -1 : x > y ? 1 : 0) * way;
  });
  const offset = Number(query.get('offset') ?? 0);
  return {
    total: found.length,
    rows: found.slice(offset, offset + Number(query.get('limit') ?? 100)),
    tags: [...new Set([...remarks.values()].flatMap((remark) => remark.tags))].sort(),
  };
}
