/** An evaluation's own report, framed, with its other forms. */

import * as client from '../../client';
import { useResource } from '../../lib/resource';
import { File } from '../../parts/file';
import { Failure } from '../../parts/notice';
import './evaluations.css';

const formats = [
  ['md', 'Markdown'],
  ['csv', 'CSV'],
  ['json', 'JSON'],
] as const;

export function Forms({ id }: { id: number }) {
  return (
    <>
      <File address={client.evaluationReport(id, 'html')} words="Open report in a new tab" opens />
      {formats.map(([format, words]) => (
        <File key={format} address={client.evaluationReport(id, format)} words={words} />
      ))}
      <a class="button small" href={`/runs?evaluation=${id}`}>
        Its runs
      </a>
    </>
  );
}

export function Report({ id }: { id: number }) {
  const report = client.evaluationReport(id, 'html');
  const { data: address, error, reload } = useResource(report, () => client.ticketed(report));
  if (error) return <Failure error={error} again={reload} />;
  // A new name each time: browsers bring back what a frame of the same name showed, and a ticket is good once.
  return (
    address && (
      <iframe class="report" name={address} src={address} title={`Report of evaluation ${id}`} sandbox="allow-popups" />
    )
  );
}

/** As the result of a submission. */
export const EvaluationResult = ({ id }: { id: number }) => (
  <section aria-label="Result">
    <h2 class="result-head">
      Result <a href={`/evaluations/${id}`}>Evaluation {id}</a>
    </h2>
    <nav class="row downloads" aria-label="Downloads">
      <Forms id={id} />
    </nav>
    <Report id={id} />
  </section>
);
