/** What the controller says about a document: whether it runs, what is wrong, what it will do and how long that takes. */

import { useEffect } from 'preact/hooks';
import type { Check, Problem } from '../../api';
import { announce } from '../../lib/announce';
import { bytes, duration, plural } from '../../lib/format';
import { Failure } from '../../parts/notice';
import { Panel } from '../../parts/panel';
import { Badge } from '../../parts/badge';
import { sorted } from './problems';

interface Props {
  check: Check | undefined;
  pending: boolean;
  trouble: Error | undefined;
  empty: boolean;
  /** Goes to the place of a problem. */
  show: (problem: Problem) => void;
}

function verdict(check: Check): string {
  const errors = check.problems.filter((problem) => !problem.warning).length;
  return check.ok ? `${check.format}: ready to run` : plural(errors, 'error');
}

export function Checked({ check, pending, trouble, empty, show }: Props) {
  const words = check && !pending ? verdict(check) : '';
  useEffect(() => {
    if (words) announce(words);
  }, [words]);
  const title = check?.ok && check.name ? `Check: ${check.name}` : 'Check';
  return (
    <Panel
      title={title}
      class={pending ? 'pending' : ''}
      aside={
        check && (
          <span class="end">
            <Badge tone={check.ok ? 'good' : 'bad'} mark={check.ok ? '✓' : '✕'}>
              {verdict(check)}
            </Badge>
          </span>
        )
      }
    >
      {trouble && <Failure error={trouble} />}
      {empty && <p class="meta">Add a document to see what it will do, how long it will take, and any errors.</p>}
      {check && check.problems.length > 0 && <Problems problems={check.problems} show={show} />}
      {check && check.stages.length > 0 && <Stages check={check} />}
      {check && check.explanation.length > 0 && (
        <details>
          <summary>Summary</summary>
          <pre>{check.explanation.join('\n')}</pre>
        </details>
      )}
    </Panel>
  );
}

/** Errors, and warnings about a place, are shown; what holds for all such documents is folded. */
export function Problems({ problems, show }: { problems: Problem[]; show: (problem: Problem) => void }) {
  const { shown, folded } = sorted(problems);
  return (
    <>
      {shown.length > 0 && <List problems={shown} show={show} />}
      {folded.length > 0 && (
        <details class="remarks">
          <summary>{plural(folded.length, 'remark')} on every document of this format</summary>
          <ul>
            {folded.map(({ message, help }) => (
              <li key={message}>
                {message}
                {help && <small> {help}</small>}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

function List({ problems, show }: { problems: Problem[]; show: (problem: Problem) => void }) {
  return (
    <ul class="problems">
      {problems.map((problem, index) => (
        <li key={index} class={problem.warning ? 'warning' : 'error'}>
          <button onClick={() => show(problem)} disabled={problem.line === 0}>
            <span class={problem.warning ? 'warn' : 'bad'}>
              <span class="mark" aria-hidden="true">
                {problem.warning ? '▲' : '✕'}
              </span>
              {problem.warning ? 'Warning' : 'Error'}
              {problem.line > 0 && `, line ${problem.line}`}
            </span>
            <span>{problem.message}</span>
            {problem.help && <small>{problem.help}</small>}
          </button>
        </li>
      ))}
    </ul>
  );
}

function Stages({ check }: { check: Check }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Stages of the document">
      <table class="forecast">
        <thead>
          <tr>
            <th scope="col">Stage</th>
            <th scope="col">Works</th>
            <th scope="col" class="n">
              Duration
            </th>
          </tr>
        </thead>
        <tbody>
          {check.stages.map((stage, index) => (
            <tr key={index}>
              <th scope="row">{stage.name}</th>
              <td>
                {stage.works.map((work) => (
                  <div key={work}>{work}</div>
                ))}
              </td>
              <td class="n">{stage.expected_ms === null ? <small>open-ended</small> : duration(stage.expected_ms)}</td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">Total</th>
            <td>{check.bytes !== null && check.bytes > 0 && `stores up to ${bytes(check.bytes)}`}</td>
            <td class="n">{check.expected_ms === null ? <small>open-ended</small> : duration(check.expected_ms)}</td>
          </tr>
        </tfoot>
      </table>
    </div>
  );
}
