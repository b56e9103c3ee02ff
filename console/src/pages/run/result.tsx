/** The result of a run: its figures and one sentence first, then why, then all of it. Shown on its own page and where it was followed. */

import type { RunRecord, RunStage } from '../../api';
import * as client from '../../client';
import { bandwidth, count, latency, percent, plural, rate } from '../../lib/format';
import { File } from '../../parts/file';
import { Notice } from '../../parts/notice';
import { Tile } from '../live/tiles';
import { Figures } from './figures';
import { Findings } from './findings';
import { Provenance } from './provenance';
import { Remarks } from './remarks';
import { Stage } from './stage';
import './run.css';

const formats = [
  ['html', 'HTML report'],
  ['md', 'Markdown'],
  ['csv', 'CSV'],
  ['series-csv', 'CSV per second'],
  ['json', 'JSON'],
] as const;

const files = [
  ['archive', 'COSBench archive'],
  ['document', 'Configuration'],
  ['log', 'Log'],
] as const;

export function Downloads({ id }: { id: number }) {
  return (
    <nav class="row downloads" aria-label="Downloads">
      {formats.map(([format, words]) => (
        <File key={format} address={client.runReport(id, format)} words={words} opens={format === 'html'} />
      ))}
      {files.map(([file, words]) => (
        <File key={file} address={client.runFile(id, file)} words={words} />
      ))}
    </nav>
  );
}

/** What is read first. */
export function Lead({ run }: { run: RunRecord }) {
  return (
    <>
      <Totals run={run} />
      <Verdict run={run} />
      <Remarks id={run.id} />
      <Findings findings={run.findings} causes={run.causes} />
    </>
  );
}

/** All the rest. */
export function Rest({ run }: { run: RunRecord }) {
  const [main, others] = mainStages(run);
  const page = ({ id }: RunStage) => `/runs/${run.id}/stages/${run.stages.findIndex((stage) => stage.id === id) + 1}`;
  return (
    <>
      {main.map((stage) => (
        <Stage key={stage.id} stage={stage} drivers={run.drivers} page={page(stage)} />
      ))}
      <Figures run={run.id} />
      {others.length > 0 && (
        <details class="others">
          <summary>Other stages: {others.map((stage) => stage.name || stage.id).join(', ')}</summary>
          {others.map((stage) => (
            <Stage key={stage.id} stage={stage} drivers={run.drivers} page={page(stage)} />
          ))}
        </details>
      )}
      <Provenance run={run} />
    </>
  );
}

const around = new Set(['init', 'prepare', 'precondition', 'cleanup', 'dispose', 'delay']);

/** Stages that measure, and those around them; where none measures, all are shown. */
function mainStages(run: RunRecord) {
  const main = run.stages.filter((stage) => stage.works.some((work) => !around.has(work.kind)));
  return main.length === 0
    ? ([run.stages, []] as const)
    : ([main, run.stages.filter((stage) => !main.includes(stage))] as const);
}

function Totals({ run: { totals } }: { run: RunRecord }) {
  const { operations, failed, throughput_per_s, bandwidth_bytes_per_s, p50_ns, p99_ns } = totals;
  const time = (ns: number | null) => (ns === null ? '–' : latency(ns / 1000));
  // Of a sweep they are its best cell's, which the first tile names.
  const of = totals.cell === null ? 'all operations' : 'that cell';
  return (
    <dl class="tiles lead" aria-label="The run in numbers">
      <Tile title={totals.cell === null ? 'Throughput' : 'Throughput, best cell'} more={totals.load}>
        {operations > 0 ? rate(throughput_per_s) : '–'}
      </Tile>
      <Tile title="Bandwidth">{bandwidth_bytes_per_s > 0 ? bandwidth(bandwidth_bytes_per_s) : '–'}</Tile>
      <Tile title={`p50, ${of}`}>{time(p50_ns)}</Tile>
      <Tile title={`p99, ${of}`}>{time(p99_ns)}</Tile>
      <Tile
        title="Errors"
        more={operations > 0 ? `${percent(failed / operations)} of ${count(operations)}` : 'nothing was measured'}
        alarm={failed > 0}
      >
        {count(failed)}
      </Tile>
    </dl>
  );
}

/** One sentence: whether the numbers hold, or why they do not. The others are folded. */
function Verdict({ run: { valid, verdict, invalid_reasons: reasons } }: { run: RunRecord }) {
  const last = verdict[verdict.length - 1] ?? (valid ? 'VALID.' : 'INVALID.');
  const [first, ...more] = reasons;
  const short = valid
    ? last
    : `INVALID: ${first ?? 'do not rely on these numbers'}${more.length > 0 ? `, and ${plural(more.length, 'more reason')}` : ''}.`;
  const others = valid ? verdict.slice(0, -1) : verdict;
  return (
    <Notice tone={valid ? 'good' : 'bad'}>
      <strong>{short}</strong>
      {others.length > 0 && (
        <details class="verdict">
          <summary>The whole verdict</summary>
          {others.map((sentence) => (
            <p key={sentence}>{sentence}</p>
          ))}
        </details>
      )}
    </Notice>
  );
}
