/** Everything needed to say what was run, and to run it again. */

import type { RunRecord } from '../../api';
import { memory } from '../../lib/format';
import { Panel } from '../../parts/panel';

export function Provenance({ run }: { run: RunRecord }) {
  const { provenance, notes } = run;
  const facts: [string, string][] = [
    ['Format', provenance.format],
    ['File', provenance.path],
    ['Seed', String(provenance.seed)],
    ['Targets', provenance.targets.join(', ')],
    ['Host', provenance.host],
    ['Kernel', provenance.kernel],
    ['CPU', `${provenance.cores} × ${provenance.cpu}`],
    ['Memory', memory(provenance.memory_bytes)],
    ['Tidemark', provenance.tidemark],
    ['Command', provenance.command],
  ];
  return (
    <>
      {notes.length > 0 && (
        <Panel title="Notes">
          <ul>
            {notes.map((note) => (
              <li key={note.topic}>{note.text}</li>
            ))}
          </ul>
        </Panel>
      )}
      <Panel title="Provenance">
        <dl class="facts">
          {facts
            .filter(([, value]) => value)
            .map(([name, value]) => (
              <>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </>
            ))}
        </dl>
        <details class="document">
          <summary>Document, secrets redacted</summary>
          <pre tabIndex={0}>{provenance.document}</pre>
        </details>
      </Panel>
    </>
  );
}
