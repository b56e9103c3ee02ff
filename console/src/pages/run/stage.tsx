/** A stage of a stored run: its works, their operations, what its drivers did. */

import type { RunDriver, RunOperation, RunStage, RunWork } from '../../api';
import { bandwidth, count, duration, latency, percent, plural, rate } from '../../lib/format';
import { State } from '../../parts/badge';
import { Panel } from '../../parts/panel';
import { Percentiles } from './percentiles';
import { Shares } from './shares';

/** `page`: where the stage has a page of its own. */
export function Stage({ stage, drivers, page }: { stage: RunStage; drivers: RunDriver[]; page?: string }) {
  return (
    <Panel
      title={`Stage ${stage.id}`}
      flush
      aside={
        <>
          <State state={stage.state} />
          <small>took {duration((stage.ended_ns - stage.started_ns) / 1e6)}</small>
          {page && (
            <a class="end" href={page}>
              Page of this stage
            </a>
          )}
        </>
      }
    >
      {stage.reason && <p class="slow bad">{stage.reason}</p>}
      {stage.works.map((work, index) => (
        <Work key={index} work={work} stage={stage} />
      ))}
      <Shares stage={stage} drivers={drivers} />
    </Panel>
  );
}

/** How the work was carried out, in one line. */
function conduct(work: RunWork): string {
  const facts = [
    `${plural(work.workers, 'worker')}${work.depth > 1 ? ` × depth ${work.depth}` : ''}`,
    work.offered_per_s !== null ? `offered ${rate(work.offered_per_s)}` : 'closed loop',
    `measured for ${duration((work.window_end_ns - work.window_start_ns) / 1e6)}`,
  ];
  if (work.unsent > 0) facts.push(`${count(work.unsent)} due but never sent`);
  if (work.undone > 0) facts.push(`${count(work.undone)} never started`);
  if (work.given_up) facts.push(`stopped early: ${work.given_up}`);
  return facts.join(' · ');
}

function Work({ work, stage }: { work: RunWork; stage: RunStage }) {
  return (
    <div class="work">
      <div class="work-head">
        <h3>Work {work.name}</h3>
        <small>{conduct(work)}</small>
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label={`Operations of ${stage.id}, ${work.name}`}>
        <table>
          <thead>
            <tr>
              <th scope="col">Operation</th>
              {[
                'Share',
                'Succeeded',
                'Failed',
                'Success rate',
                'Throughput',
                'Bandwidth',
                'Mean',
                'p50',
                'p95',
                'p99',
                'Max',
              ].map((head) => (
                <th key={head} scope="col" class="n">
                  {head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {work.operations.map((operation, index) => (
              <Row key={index} operation={operation} />
            ))}
          </tbody>
        </table>
      </div>
      <Percentiles work={work} />
      {work.examples.length > 0 && (
        <details class="inner">
          <summary>Example failures</summary>
          <ul>
            {work.examples.map((example, index) => (
              <li key={index}>
                {example.fault}: <code>{example.text}</code>
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}

function Row({ operation }: { operation: RunOperation }) {
  const { label, config, weight_percent, ok, failed, success_ratio, faults, response } = operation;
  const why = Object.entries(faults)
    .map(([fault, number]) => `${count(number)} ${fault}`)
    .join(', ');
  const at = (name: string) => {
    const ns = response?.percentiles_ns[name];
    return ns === undefined ? '–' : latency(ns / 1000);
  };
  return (
    <tr>
      <th scope="row" title={config}>
        {label}
      </th>
      <td class="n">{percent(weight_percent / 100)}</td>
      <td class="n">{count(ok)}</td>
      <td class={failed > 0 ? 'n bad' : 'n'}>
        {count(failed)}
        {why && <small> {why}</small>}
      </td>
      <td class="n">{success_ratio === null ? '–' : percent(success_ratio)}</td>
      <td class="n">{rate(operation.throughput_per_s)}</td>
      <td class="n">{bandwidth(operation.bandwidth_bytes_per_s)}</td>
      <td class="n">{response ? latency(response.mean_ns / 1000) : '–'}</td>
      <td class="n">{at('p50')}</td>
      <td class="n">{at('p95')}</td>
      <td class="n">{at('p99')}</td>
      <td class="n">{response ? latency(response.max_ns / 1000) : '–'}</td>
    </tr>
  );
}
