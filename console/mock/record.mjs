/** A stored run in full, and its figures. */

import { chance } from './chance.mjs';
import { numbers, runRow } from './history.mjs';

const kinds = ['read', 'write', 'delete', 'list'];
const percentileNames = ['p50', 'p60', 'p80', 'p90', 'p95', 'p99', 'p99.9', 'p99.99'];

function distribution({ ok, mean, percentiles }, times = 1) {
  return {
    count: ok,
    mean_ns: mean * 1000 * times,
    min_ns: Math.round(percentiles[0] * 300 * times),
    max_ns: Math.round(percentiles[8] * 1000 * times),
    percentiles_ns: Object.fromEntries(
      percentileNames.map((name, at) => [name, Math.round(percentiles[at] * 1000 * times)]),
    ),
    v2: '',
  };
}

function operation(run, kind, index) {
  const of = numbers(run, index);
  return {
    label: kind,
    kind,
    sample: kind,
    weight_percent: [60, 20, 15, 5][index],
    config: 'containers=u(1,4);objects=u(1,1000)',
    ok: of.ok,
    failed: of.failed,
    success_ratio: of.ok / (of.ok + of.failed),
    bytes: of.ok * of.size,
    late: 0,
    late_bytes: 0,
    early: 0,
    early_bytes: 0,
    outside_bytes: 0,
    verifies: false,
    verified: 0,
    placed: 0,
    unchecked: {},
    retries: 0,
    throughput_per_s: of.throughput,
    bandwidth_bytes_per_s: of.throughput * of.size,
    faults: of.failed ? { timeout: of.failed } : {},
    response: distribution(of),
    service: distribution(of, 0.97),
    first_byte: distribution(of, 0.6),
    lag: distribution(of, 0.03),
    own_lag: distribution(of, 0.01),
    failure: null,
    said: null,
  };
}

function work(run, name, kind, operations, seconds) {
  return {
    name,
    kind,
    workers: numbers(run, 0).workers,
    depth: 1,
    connections: null,
    threads: 8,
    offered_per_s: null,
    think: null,
    simulated: false,
    started_ns: 0,
    window_start_ns: 2e9,
    window_end_ns: (2 + seconds) * 1e9,
    last_done_ns: (2 + seconds) * 1e9,
    silence: null,
    silence_ns: 0,
    unsent: 0,
    undone: 0,
    unknown: 0,
    given_up: '',
    allowed_failures_per_million: 0,
    settling: null,
    window_rounds: null,
    operations,
    workers_counts: [],
    endpoints: [],
    fairness: null,
    series: [],
    examples: numbers(run, 0).failed ? [{ fault: 'timeout', text: 'GET b2/o719: no answer within 30 s' }] : [],
  };
}

export function record(id) {
  const row = runRow(id);
  const drivers = Array.from({ length: 1 + (id % 4) }, (_, index) => ({
    name: `driver-${String(index + 1).padStart(3, '0')}`,
    host: `node-${index + 1}`,
    kernel: 'Linux 6.18.44',
    cpu: 'AMD EPYC 9354',
    cores: 32,
    memory_bytes: 137438953472,
    clock_offset_ns: 1200 * index,
    clock_error_ns: 42_000 + index * 900,
    lost: id % 41 === 0 && index === 1 ? { at_ns: 31e9, reason: 'it said nothing for 10 s' } : null,
  }));
  const stage = (number, name, works, from, to) => ({
    id: `s${number}-${name}`,
    name,
    state: name === 'main' ? row.state : 'completed',
    reason: name === 'main' && row.state === 'failed' ? 'driver-002 was lost: it said nothing for 10 s' : '',
    started_ns: from * 1e9,
    ended_ns: to * 1e9,
    works,
    cell: null,
    proof: null,
    figures: [],
    under_queries: [],
    shares: drivers.map((driver, index) => ({
      driver: index,
      work: 0,
      first_worker: 8 * index,
      workers: 8,
      threads: 2,
      series: [],
      ok: Math.round((numbers(id, 0).ok / drivers.length) * (1 + 0.02 * index)),
      failed: 0,
      bytes: 65_536 * 5000,
      read_bytes: 65_536 * 5000,
      written_bytes: 0,
      first_sent_ns: from * 1e9 + index * 700_000,
      complete: driver.lost === null,
    })),
  });
  const one = (name, kind) => work(id, name, kind, [{ ...operation(id, kind, 1), label: name }], 3);
  return {
    schema: 1,
    id,
    name: row.name,
    description: 'reads, writes, deletes and lists of 64 KiB objects against the gateway',
    started_unix_ns: row.started_unix_ms * 1e6,
    started: new Date(row.started_unix_ms).toISOString(),
    elapsed_ns: row.elapsed_ms * 1e6,
    state: row.state,
    valid: row.valid === true,
    invalid_reasons: row.valid ? [] : ['the load generator was saturated: 96 % busy on average'],
    invalid_rules: row.valid ? [] : ['generator-busy'],
    findings: findings(row),
    causes: causes(findings(row)),
    verdict: [
      row.headline,
      row.valid
        ? 'VALID, with 1 warning.'
        : 'INVALID: these numbers do not show what was requested: the load generator was saturated: 96 % busy on average.',
    ],
    totals: {
      load: `70 % read / 30 % write, ${numbers(id, 0).workers} workers`,
      cell: null,
      throughput_per_s: numbers(id, 0).throughput * 1.4,
      bandwidth_bytes_per_s: numbers(id, 0).throughput * numbers(id, 0).size,
      p50_ns: numbers(id, 0).percentiles[0] * 1000,
      p99_ns: numbers(id, 0).percentiles[5] * 1000,
      operations: row.operations + row.failed,
      failed: row.failed,
    },
    losses: [],
    notes: [
      { topic: 'kib-units', text: 'Sizes in KB count by 1000 here; COSBench counts them by 1024 in some places.' },
    ],
    provenance: {
      tidemark: '0.1.0',
      command: 'tidemark serve --listen 0.0.0.0:8377',
      path: '',
      format: 'Tidemark YAML',
      document: `name: ${row.name}\ntarget:\n  kind: s3\n  endpoint: http://10.0.0.1:7480\n  access_key: '***'\n  secret_key: '***'\nstages:\n  - init: {containers: 1-4}\n`,
      seed: 2026 + id,
      targets: ['S3 at http://10.0.0.1:7480 (Ceph Object Gateway)'],
      host: 'controller-1',
      kernel: 'Linux 6.18.44',
      cpu: 'AMD EPYC 9354',
      cores: 32,
      memory_bytes: 137438953472,
    },
    stages: [
      stage(1, 'init', [one('init', 'init')], 0, 1),
      stage(2, 'prepare', [one('prepare', 'prepare')], 1, 9),
      stage(
        3,
        'main',
        [
          work(
            id,
            'main',
            'normal',
            kinds.map((kind, index) => operation(id, kind, index)),
            60,
          ),
        ],
        9,
        71,
      ),
      stage(4, 'cleanup', [one('cleanup', 'cleanup')], 71, 75),
    ],
    member: null,
    nodes: [],
    drivers,
  };
}

/** As the judge groups them. */
function causes(findings) {
  const of = { 'few-samples': 'certainty', failures: 'failures', 'generator-busy': 'generator' };
  const groups = [];
  findings.forEach(({ severity, rule }, place) => {
    if (severity === 'good') return;
    const cause = of[rule];
    const group = groups.find((one) => one.cause === cause);
    if (group) group.others.push(place);
    else groups.push({ cause, severity, first: place, others: [] });
  });
  return groups;
}

function findings(row) {
  const place = { stage: 's3-main', work: 'main', stages: [] };
  const found = [
    {
      severity: 'note',
      rule: 'few-samples',
      title: 'there are too few samples for the highest percentiles',
      detail: 'Those percentiles, and all above, are a few operations’ luck: do not compare them between runs.',
      evidence: ['read: 40,645 samples; p99.99 needs 100,000'],
      invalidates: false,
      facts: [],
      ...place,
    },
    {
      severity: 'good',
      rule: 'littles-law',
      title: 'throughput, latencies and workers agree (Little’s law)',
      detail: '',
      evidence: ['mean in flight: 47.840 s / 47.986 s x 8 = 7.98'],
      invalidates: false,
      facts: [],
      ...place,
    },
  ];
  if (row.failed)
    found.unshift({
      severity: 'warning',
      rule: 'failures',
      title: '0.2 % of the operations failed',
      detail: 'All were timeouts.',
      evidence: [],
      invalidates: false,
      facts: [],
      ...place,
    });
  if (row.valid === false)
    found.unshift({
      severity: 'critical',
      rule: 'generator-busy',
      title: 'the load generator was saturated: 96 % busy on average',
      detail: 'The numbers are those of the generator, not of the storage. Use more drivers.',
      evidence: ['seconds at 95.00 % or more: 44 of 60'],
      invalidates: true,
      facts: [],
      ...place,
    });
  return found;
}

export const figures = [
  ['s3-main-throughput', 'Throughput over time', 'op/s'],
  ['s3-main-bandwidth', 'Bandwidth over time', 'MB/s'],
  ['s3-main-latency-read', 'Response times of read', 'ms'],
  ['s3-main-percentiles', 'Percentiles of the response times', 'ms'],
].map(([name, title, unit]) => ({
  name,
  title,
  description: `read: between 391 and 491 ${unit}. write: between 173 and 208 ${unit}.`,
  stage: 's3-main',
  work: 'main',
  unit,
}));

/** A drawing in the manner of the reports' figures. */
export function drawing(title, description, unit, seed) {
  const random = chance(seed);
  const line = (level) =>
    'M' +
    Array.from(
      { length: 60 },
      (_, at) => `${(62 + (at * 398) / 59).toFixed(1)} ${(level + random() * 22).toFixed(1)}`,
    ).join('L');
  return `<svg xmlns="http://www.w3.org/2000/svg" class="fig" role="img" width="564" height="296" viewBox="-12 -34 564 296" aria-labelledby="t d">
<title id="t">${title}</title><desc id="d">${description}</desc>
<style>.fig{font-size:12px;font-family:system-ui,sans-serif}.fig text{fill:#57606a}.fig .paper{fill:#fff}.fig .headline{fill:#1b1f24;font-size:14px;font-weight:600}.fig .grid path{stroke:#e4e7eb;fill:none}.fig .axis{stroke:#57606a;fill:none}.fig .end{text-anchor:end}.fig .line{fill:none;stroke-width:1.8}.fig .c0{stroke:#0067a5}.fig .c1{stroke:#b94700}.fig .f0{fill:#0067a5}.fig .f1{fill:#b94700}.fig .name{font-weight:600}</style>
<rect class="paper" x="-12" y="-34" width="564" height="296"/><text class="headline" x="0" y="-8">${title}</text>
<g class="grid"><path d="M62 210H460"/><path d="M62 148.7H460"/><path d="M62 87.3H460"/><path d="M62 26H460"/></g>
<text class="end" x="54" y="214">0</text><text class="end" x="54" y="152.7">200</text><text class="end" x="54" y="91.3">400</text><text class="end" x="54" y="30">600</text><text x="0" y="12">${unit}</text>
<path class="axis" d="M62 210H460"/><path class="line c0" d="${line(60)}"/><path class="line c1" d="${line(140)}"/><text class="name f0" x="468" y="76">read</text><text class="name f1" x="468" y="156">write</text></svg>`;
}
