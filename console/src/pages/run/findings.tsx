/** What was found about a run, the gravest first, with its evidence. */

import type { Finding, Group, Severity } from '../../api';
import { plural } from '../../lib/format';
import { Panel } from '../../parts/panel';

const marks: Record<Severity, string> = { critical: '✕', warning: '!', note: 'i', good: '✓' };
const words: Record<Severity, string> = { critical: 'Critical', warning: 'Warning', note: 'Note', good: 'Good' };

/** Titles of groups. */
const causes: Record<Group['cause'], string> = {
  failures: 'Failures',
  drivers: 'Drivers',
  conduct: 'How the run went',
  generator: 'The load generator',
  limits: 'What limited the load',
  proof: 'What the devices saw',
  certainty: 'How sure the numbers are',
};

/** `groups`: the findings by their causes; null where each stands for itself. */
export function Findings({ findings, causes: groups }: { findings: Finding[]; causes: Group[] | null }) {
  const passed = findings.filter((finding) => finding.severity === 'good');
  const others = findings.filter((finding) => finding.severity !== 'good');
  return (
    <Panel title="Findings">
      {others.length === 0 && <p class="meta">No problems found.</p>}
      <div class="findings">
        {groups
          ? groups.map((group) => <Cause key={group.cause} group={group} findings={findings} />)
          : others.map((finding, index) => <One key={index} finding={finding} />)}
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

/** One cause: the finding that says it best, and what else comes from it. */
function Cause({ group, findings }: { group: Group; findings: Finding[] }) {
  const first = findings[group.first];
  if (!first) return null;
  const others = group.others.flatMap((place) => findings[place] ?? []);
  return (
    <div class="cause">
      <small class="cause-name">{causes[group.cause]}</small>
      <One finding={first} />
      {others.length > 0 && (
        <details>
          <summary>{plural(others.length, 'more finding')} about the same</summary>
          {others.map((finding, index) => (
            <One key={index} finding={finding} />
          ))}
        </details>
      )}
    </div>
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
