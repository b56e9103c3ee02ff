/** What each driver did of a stage, when it began, and what of it is missing. */

import type { RunDriver, RunStage } from '../../api';
import { bytes, count, latency, plural } from '../../lib/format';

/** With more drivers than this the table is folded. */
const many = 8;

export function Shares({ stage, drivers }: { stage: RunStage; drivers: RunDriver[] }) {
  const shares = stage.shares;
  if (shares.length === 0 || drivers.length === 0) return null;
  const begun = shares.map((share) => share.first_sent_ns).filter((at) => at !== null);
  const first = Math.min(...begun);
  const skew = begun.length > 1 ? (Math.max(...begun) - first) / 1000 : null;
  return (
    <details class="inner" open={shares.length <= many}>
      <summary>
        {plural(drivers.length, 'driver')}
        {skew !== null && <small> first operations sent within {latency(skew)} of each other</small>}
      </summary>
      <div class="scroll" tabIndex={0} role="region" aria-label={`Drivers of ${stage.id}`}>
        <table>
          <thead>
            <tr>
              <th scope="col">Driver</th>
              <th scope="col">Host</th>
              {stage.works.length > 1 && <th scope="col">Work</th>}
              {['Workers', 'Succeeded', 'Failed', 'Bytes', 'Start delay', 'Clock ±'].map((head) => (
                <th key={head} scope="col" class="n">
                  {head}
                </th>
              ))}
              <th scope="col">Complete</th>
            </tr>
          </thead>
          <tbody>
            {shares.map((share, index) => {
              const driver = drivers[share.driver];
              return (
                <tr key={index}>
                  <th scope="row">{driver?.name ?? share.driver}</th>
                  <td>{driver?.host}</td>
                  {stage.works.length > 1 && <td>{stage.works[share.work]?.name}</td>}
                  <td class="n">{count(share.workers)}</td>
                  <td class="n">{count(share.ok)}</td>
                  <td class={share.failed > 0 ? 'n bad' : 'n'}>{count(share.failed)}</td>
                  <td class="n">{bytes(share.bytes)}</td>
                  <td class="n">
                    {share.first_sent_ns === null
                      ? share.complete
                        ? 'never'
                        : 'not reported'
                      : latency((share.first_sent_ns - first) / 1000)}
                  </td>
                  <td class="n">{driver ? latency(driver.clock_error_ns / 1000) : '–'}</td>
                  <td>
                    {share.complete ? '✓ yes' : <span class="bad">✕ {driver?.lost?.reason ?? 'incomplete'}</span>}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </details>
  );
}
