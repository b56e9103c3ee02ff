/** The latest second of a work, operation by operation: the charts' numbers as a table. */

import { bandwidth, clock, count, latency } from '../../lib/format';
import { Panel } from '../../parts/panel';
import type { Buffer, WorkSeconds } from './buffer';
import { labels } from './labels';

export function Now({ buffer, work }: { buffer: Buffer; work: WorkSeconds }) {
  const last = work.seconds[work.seconds.length - 1];
  if (!last) return null;
  const names = labels(buffer, work);
  return (
    <Panel
      title="Latest second by operation"
      flush
      aside={<small class="end">at {clock(last.index)} since the work started</small>}
    >
      <div class="scroll" tabIndex={0} role="region" aria-label="Latest second by operation">
        <table>
          <thead>
            <tr>
              <th scope="col">Operation</th>
              {['Succeeded', 'Failed', 'Bandwidth', 'Mean', 'p50', 'p95', 'p99', 'Max'].map((title) => (
                <th scope="col" class="n" key={title}>
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {last.operations.map((of, index) => (
              <tr key={index}>
                <th scope="row">{names[index]}</th>
                <td class="n">{count(of.ok)}</td>
                <td class={of.failed > 0 ? 'n bad' : 'n'}>{count(of.failed)}</td>
                <td class="n">{bandwidth(of.bytes)}</td>
                {[of.mean_us, of.p50_us, of.p95_us, of.p99_us, of.max_us].map((us, at) => (
                  <td class="n" key={at}>
                    {of.ok > 0 ? latency(us) : '–'}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}
