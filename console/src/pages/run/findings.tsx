/** What was found about a run, the gravest first, with its evidence. */

import type { Finding, Severity } from '../../api';
import { plural } from '../../lib/format';
import { Panel } from '../../parts/panel';

const marks: Record<Severity, string> = { critical: '✕', warning: '!', note: 'i', good: '✓' };
const words: Record<Severity, string> = { critical: 'Critical', warning: 'Warning', note: 'Note', good: 'Good' };

export function Findings({ findings }: { findings: Finding[] }) {
  const passed = findings.filter((finding) => finding.severity === 'good');
  const others = findings.filter((finding) => finding.severity !== 'good');
  return (
    <Panel title="Findings">
      {others.length === 0 && <p class="meta">No problems found.</p>}
      <div class="findings">
        {others.map((finding, index) => (
          <One key={index} finding={finding} />
        ))}
      </div>
      {passed.length > 0 && (
        <details>
          <summary>{plural(passed.length, 'check')} passed</summary>
          <div class="findings">
            {passed.map((finding, index) => (
              <One key={index} finding={finding} />
            ))}
          </div>
        </details>
      )}
    </Panel>
  );
}

/** Where it was found. */
function place({ stage, work, stages }: Finding): string {
  if (stage) return work ? `${stage}, work “${work}”` : stage;
  return stages.length > 1 ? `${stages.length} stages` : (stages[0] ?? 'the run');
}

function One({ finding }: { finding: Finding }) {
  const { severity, title, detail, evidence, invalidates } = finding;
  return (
    <article class={`finding ${severity}`}>
      <h3>
        <span class="mark" aria-hidden="true">
          {marks[severity]}
        </span>
        <span class="unseen">{words[severity]}: </span>
        {title}
      </h3>
      <small>
        {place(finding)}
        {invalidates && ' · makes the run INVALID'}
      </small>
      {detail && <p>{detail}</p>}
      {evidence.length > 0 && (
        <ul>
          {evidence.map((line) => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      )}
    </article>
  );
}
