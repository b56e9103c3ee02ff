/** All percentiles of a work's operations, of every kind of time that was measured. */

import type { Distribution, RunOperation, RunWork } from '../../api';
import { count, latency } from '../../lib/format';

type Kind = 'response' | 'service' | 'first_byte' | 'lag';

const kinds: readonly (readonly [Kind, string, string])[] = [
  ['response', 'response', 'from due time to completion'],
  ['service', 'service', 'from send to completion'],
  ['first_byte', 'first byte', 'from send to the first byte of the response'],
  ['lag', 'lag', 'from due time to send'],
];

/** Names of the percentiles that are there, in their order. */
function names(operations: RunOperation[]): string[] {
  const found = new Set(operations.flatMap((one) => Object.keys(one.response?.percentiles_ns ?? {})));
  return [...found].sort((a, b) => Number(a.slice(1)) - Number(b.slice(1)));
}

export function Percentiles({ work }: { work: RunWork }) {
  const columns = names(work.operations);
  if (columns.length === 0) return null;
  return (
    <details class="inner">
      <summary>All percentiles</summary>
      <div class="scroll" tabIndex={0} role="region" aria-label={`Percentiles of ${work.name}`}>
        <table>
          <thead>
            <tr>
              <th scope="col">Operation</th>
              <th scope="col">Time</th>
              {['Samples', 'Mean', 'Min', ...columns, 'Max'].map((name) => (
                <th key={name} scope="col" class="n">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {work.operations.flatMap((operation) =>
              kinds.map(([kind, word, meaning]) => {
                const times = operation[kind];
                return (
                  times && <Row key={`${operation.label} ${kind}`} {...{ operation, times, word, meaning, columns }} />
                );
              }),
            )}
          </tbody>
        </table>
      </div>
    </details>
  );
}

interface RowProps {
  operation: RunOperation;
  times: Distribution;
  word: string;
  meaning: string;
  columns: string[];
}

function Row({ operation, times, word, meaning, columns }: RowProps) {
  const values = [times.mean_ns, times.min_ns, ...columns.map((name) => times.percentiles_ns[name]), times.max_ns];
  return (
    <tr>
      <th scope="row">{operation.label}</th>
      <td title={meaning}>{word}</td>
      <td class="n">{count(times.count)}</td>
      {values.map((ns, index) => (
        <td key={index} class="n">
          {ns === undefined ? '–' : latency(ns / 1000)}
        </td>
      ))}
    </tr>
  );
}
