/** What is there now: drivers, submissions that run, wait and ended, and the seconds of those that run. */

import { EventEmitter } from 'node:events';
import { chance } from './chance.mjs';
import { runs } from './history.mjs';

const random = chance(7);
const now = () => Date.now();
const labels = ['read', 'write', 'delete', 'list'];

export const events = new EventEmitter().setMaxListeners(0);
let number = 0;
export const lastEvent = () => number;
const tell = (name, data, submission) => events.emit('event', { id: ++number, name, data, submission });

export const drivers = Array.from({ length: 100 }, (_, index) => ({
  name: `driver-${String(index + 1).padStart(3, '0')}`,
  state: index === 41 ? 'silent' : index === 77 ? 'gone' : index < 97 ? 'busy' : 'idle',
  host: `rack${(index % 5) + 1}-node${String((index % 20) + 1).padStart(2, '0')}`,
  address: `10.0.${index % 5}.${index + 10}:49152`,
  version: '0.1.0',
  kernel: 'Linux 6.18.44',
  cpu: 'AMD EPYC 9354 32-Core Processor',
  cores: 32,
  memory_bytes: 137438953472,
  cpu_busy: 0,
  memory_used_bytes: 9e9,
  received_per_s: 0,
  sent_per_s: 0,
  clock_error_us: 30 + random() * 60,
  ending: null,
  silent_ms: 0,
  joined_unix_ms: now() - 86_400_000 + index * 1000,
  submission: index < 97 && index !== 77 ? (index < 80 ? 101 : index < 93 ? 102 : 103) : null,
}));

const blank = {
  by: 'anna',
  format: 'Tidemark YAML',
  priority: 0,
  reason: '',
  started_unix_ms: null,
  ended_unix_ms: null,
  expected_ms: 300_000,
  progress: null,
  stage: '',
  drivers: [],
  run: null,
  evaluation: null,
  valid: null,
  headline: '',
  operations: 'read, write, delete, list',
  rates: [],
};

const active = [0, 1, 2].map((index) => ({
  ...blank,
  id: 101 + index,
  name: ['ceph-rgw-70-30', 'archive-8m', 'whitepaper-4k'][index],
  format: index === 2 ? 'COSBench XML' : blank.format,
  state: 'running',
  submitted_unix_ms: now() - 400_000,
  started_unix_ms: now() - 150_000 - index * 20_000,
  expected_ms: 1_200_000 + index * 300_000,
  stage: 's3-main',
  drivers: drivers.filter((driver) => driver.submission === 101 + index).map((driver) => driver.name),
  run: 1001 + index,
}));

const queued = Array.from({ length: 20 }, (_, index) => ({
  ...blank,
  id: 104 + index,
  name: ['backup-nightly', 'web-4k', 'oltp-mixed', 'web-64k'][index % 4] + `-${index + 1}`,
  state: 'queued',
  by: index % 3 ? 'ci' : 'anna',
  priority: index < 3 ? 10 : 0,
  submitted_unix_ms: now() - 380_000 + index * 9000,
  expected_ms: index % 5 === 4 ? null : 60_000 * (1 + (index % 7)),
  reason: index === 0 ? 'waiting for 5 more drivers' : 'waiting for its turn',
}));

const ended = runs.slice(0, 60).map((run, index) => ({
  ...blank,
  id: 100 - index,
  name: run.name,
  state: index === 3 ? 'cancelled' : run.state,
  reason: index === 3 ? 'cancelled by anna' : run.state === 'failed' ? 'driver-002 was lost' : '',
  submitted_unix_ms: run.started_unix_ms - 5000,
  started_unix_ms: run.started_unix_ms,
  ended_unix_ms: run.started_unix_ms + run.elapsed_ms,
  progress: 1,
  run: run.id,
  valid: run.valid,
  headline: run.headline,
}));

export const submissions = [...queued.slice().reverse(), ...active.slice().reverse(), ...ended];
/** In the order in which they will begin. */
export const queue = queued.slice();
export const find = (id) => submissions.find((one) => one.id === id);

export const overview = () => ({
  drivers,
  active: submissions.filter((one) => one.state === 'running').sort((a, b) => a.id - b.id),
  queue,
  recent: submissions
    .filter((one) => one.ended_unix_ms !== null)
    .sort((a, b) => b.ended_unix_ms - a.ended_unix_ms)
    .slice(0, 20),
  troubles: ['driver-078 is gone since 14:02: the connection was closed by its host'],
});

let lastNumber = 123;
export function add(submit, name, by) {
  const submission = {
    ...blank,
    id: ++lastNumber,
    name,
    by,
    priority: submit.priority ?? 0,
    drivers: submit.drivers ?? [],
    state: 'queued',
    submitted_unix_ms: now(),
    document: submit.document,
  };
  if (submit.document.trimStart().startsWith('<')) submission.format = 'COSBench XML';
  submissions.unshift(submission);
  const behind = queue.findIndex((one) => one.priority < submission.priority);
  queue.splice(behind < 0 ? queue.length : behind, 0, submission);
  tell('overview', overview());
  return submission;
}

export function change(submission, { priority, before }) {
  queue.splice(queue.indexOf(submission), 1);
  const at = queue.findIndex((one) => (before === undefined ? one.priority < priority : one.id === before));
  submission.priority = before === undefined ? priority : queue[at].priority;
  queue.splice(at < 0 ? queue.length : at, 0, submission);
  tell('overview', overview());
}

export function cancel(submission, atOnce) {
  if (queue.includes(submission)) queue.splice(queue.indexOf(submission), 1);
  Object.assign(submission, {
    state: 'cancelled',
    reason: `cancelled by anna${atOnce ? ', at once' : ''}`,
    ended_unix_ms: now(),
    valid: submission.run === null ? null : true,
  });
  if (submission.run !== null) submission.run = 1000;
  const mark = { unix_ms: now(), kind: 'cancelled', driver: '', text: 'cancelled: the load ends' };
  tell('mark', mark, submission.id);
  tell('ended', submission, submission.id);
  tell('overview', overview());
}

// What goes on, second by second.

const seconds = new Map(active.map((one) => [one.id, []]));
const stagesOf = (one) => {
  const begun = one.started_unix_ms;
  const stage = (id, state, from, to, expected, operations, works) => ({
    id,
    name: id.slice(3),
    state,
    reason: '',
    started_unix_ms: from,
    ended_unix_ms: to,
    expected_ms: expected,
    expected_operations: id === 's2-prepare' ? 4000 : null,
    operations,
    works: works.map((work) => ({ ...work, window_start_ms: 8000, window_end_ms: null })),
  });
  const list = seconds.get(one.id) ?? [];
  const done = list.reduce((sum, second) => sum + second.operations.reduce((ok, operation) => ok + operation.ok, 0), 0);
  const small = (name) => [{ name, workers: 8, operations: [name] }];
  const going = one.state === 'running';
  return [
    stage('s1-init', 'completed', begun, begun + 2000, null, 4, small('init')),
    stage('s2-prepare', 'completed', begun + 2000, begun + 30_000, null, 4000, small('prepare')),
    stage(
      's3-main',
      going ? 'running' : 'interrupted',
      begun + 30_000,
      going ? null : one.ended_unix_ms,
      one.expected_ms - 60_000,
      done,
      [
        { name: 'main', workers: 640, operations: labels },
        { name: 'scan', workers: 4, operations: ['list'] },
      ],
    ),
    stage('s4-cleanup', 'waiting', null, null, 25_000, 0, small('cleanup')),
    stage('s5-dispose', 'waiting', null, null, 2000, 0, small('dispose')),
  ];
};

function operation(level, at, index) {
  const wave = 1 + 0.12 * Math.sin((at + index * 9) / 17) + (random() - 0.5) * 0.1;
  const dip = at % 97 > 88 ? 0.35 : 1;
  const mean = ((1200 * (index + 1)) / dip) * (0.9 + random() * 0.2);
  return {
    ok: Math.round(level * wave * dip),
    failed: at % 97 > 92 ? Math.round(random() * 30) : 0,
    bytes: index < 2 ? Math.round(level * wave * dip) * 65_536 : 0,
    mean_us: mean,
    p50_us: mean * 0.9,
    p95_us: mean * 2.2,
    p99_us: mean * (3.4 + random()),
    max_us: mean * (8 + random() * 20),
  };
}

function second(one, index, at) {
  const operations = labels.map((_, place) =>
    operation([42_000, 14_000, 9000, 2500][place] / (one.id - 100), index, place),
  );
  const names = one.drivers;
  const shares = names.map((driver, place) => {
    const slow = place === 7 ? 0.45 : 1;
    const part = (0.94 + random() * 0.12) * slow;
    const ok = operations.reduce((sum, operation) => sum + operation.ok, 0) / names.length;
    return {
      driver,
      ok: Math.round(ok * part),
      failed: 0,
      bytes: Math.round(ok * part * 45_000),
      p50_us: 1300 / slow,
      p99_us: (4800 + random() * 900) / slow,
      busy: 0.4 + random() * 0.15,
    };
  });
  return {
    stage: 2,
    work: 0,
    index,
    unix_ms: at,
    operations: index < 8 ? operations.map((of) => ({ ...of, ok: 0, failed: 0, bytes: 0 })) : operations,
    unmeasured: index < 8 ? operations.reduce((sum, of) => sum + of.ok, 0) : 0,
    missing: index > 20 && index % 60 < 12 ? [names[3]] : [],
    in_flight: 600 + Math.round(random() * 40),
    backlog: index % 97 > 90 ? 120 : 0,
    busy: 0.46,
    drivers: shares.filter((_, place) => !(place === 3 && index > 20 && index % 60 < 12)),
  };
}

const scan = (index, at) => ({
  stage: 2,
  work: 1,
  index,
  unix_ms: at,
  operations: [operation(300, index, 3)],
  unmeasured: 0,
  in_flight: 4,
  backlog: 0,
  busy: 0.1,
  drivers: [],
  missing: [],
});

for (const one of active) {
  const list = seconds.get(one.id);
  for (let index = 0; index < 120; index++)
    list.push(second(one, index, now() - (120 - index) * 1000), scan(index, now() - (120 - index) * 1000));
}

const sample = (one, at) =>
  [...one.drivers.slice(0, 20).map((name) => [name, true]), ['osd-1', false], ['osd-2', false], ['rgw-1', false]].map(
    ([name, generates], index) => ({
      name,
      generates,
      unix_ms: at,
      cpu_busy: generates ? 0.35 + random() * 0.2 : 0.7 + random() * 0.29,
      memory_used_bytes: 2.1e10 + index * 1e8,
      received_per_s: 3e8 * (0.8 + random() * 0.4),
      sent_per_s: 1e8 * (0.8 + random() * 0.4),
    }),
  );

/** Where the evaluation stands that submission 102 is. */
function board() {
  const arms = ['disk', 'memory', 'nvme'];
  const levels = ['workers 8', 'workers 32', 'workers 128'];
  const cells = levels.slice(0, 2).flatMap((level, row) =>
    arms.slice(0, row === 0 ? 3 : 2).map((arm, column) => {
      const throughput = 900 * (row + 1) * (column * 1.4 + 1);
      const runs = row === 0 ? [1, 2, 3] : [4, 5].slice(0, 2 - column);
      return {
        ...{ arm, load: 'web', subject: '', level, runs, throughput, failed: column === 2 ? 3 : 0 },
        throughput_interval: runs.length > 1 ? [throughput * 0.94, throughput * 1.06] : null,
        p99_us: 12_000 / (column + 1),
        p99_interval_us: null,
        meets: row === 0 ? true : column > 0,
        objection: '',
      };
    }),
  );
  return {
    evaluation: 24,
    done: 12,
    of: 27,
    phase: '',
    now: { arm: 'memory', load: 'web', level: 'workers 32', repeat: 2 },
    repeats: 3,
    arms,
    loads: [
      { name: 'web', levels, searched: false },
      { name: 'limit', levels: [], searched: true },
    ],
    cells,
  };
}

/** The latest samples of each running submission's nodes. */
const samples = new Map(
  active.map((one) => [one.id, Array.from({ length: 60 }, (_, index) => sample(one, now() - (60 - index) * 1000))]),
);

export const liveRun = (one) => ({
  submission: one.id,
  run: one.run,
  stages: one.started_unix_ms === null ? [] : stagesOf(one),
  seconds: (seconds.get(one.id) ?? []).slice(-1200),
  nodes: (samples.get(one.id) ?? []).flat(),
  marks: (seconds.get(one.id) ?? []).flatMap(({ work, index, unix_ms }) => {
    if (work !== 0) return [];
    const mark = (kind, driver, text) => [{ unix_ms, kind, driver, text }];
    const name = one.drivers[3];
    if (index > 20 && index % 60 === 0) return mark('driver_silent', name, `${name} is silent`);
    if (index > 20 && index % 60 === 12) return mark('driver_back', name, `${name} is back`);
    return index % 97 === 93 ? mark('failures', '', 'read fails') : [];
  }),
  board: one.id === 102 ? board() : null,
  troubles: one.state === 'running' ? ['driver-008 does 45 % of what the others do'] : [],
  last_event: number,
});

/** Everything that happens in one second. */
export function tick() {
  for (const driver of drivers) {
    const works = driver.state === 'busy';
    if (driver.state === 'silent' || driver.state === 'gone') driver.silent_ms += 1000;
    driver.cpu_busy = works ? 0.4 + random() * 0.58 : random() * 0.03;
    driver.received_per_s = works ? 3e8 * (0.8 + random() * 0.4) : 2e4;
    driver.sent_per_s = works ? 1e8 * (0.8 + random() * 0.4) : 1e4;
  }
  for (const one of active) {
    if (one.state !== 'running') continue;
    one.progress = Math.min(1, (now() - one.started_unix_ms) / one.expected_ms);
    const list = seconds.get(one.id);
    const index = list[list.length - 1].index + 1;
    for (const told of [second(one, index, now()), scan(index, now())]) {
      list.push(told);
      tell('second', told, one.id);
    }
    if (index % 5 === 0) tell('stages', stagesOf(one), one.id);
    const observed = sample(one, now());
    samples.get(one.id).push(observed);
    samples.get(one.id).splice(0, samples.get(one.id).length - 60);
    tell('nodes', observed, one.id);
    one.rates = list
      .filter((second) => second.work === 0)
      .slice(-90)
      .map((second) => second.operations.reduce((sum, of) => sum + of.ok, 0));
  }
  tell('overview', overview());
}
