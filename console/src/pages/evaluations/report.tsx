/** An evaluation's own report, framed, with its other forms. */

import * as client from '../../client';
import './evaluations.css';

const formats = [
  ['md', 'Markdown'],
  ['csv', 'CSV'],
  ['json', 'JSON'],
] as const;

export function Forms({ id }: { id: number }) {
  return (
    <>
      <a class="button small" href={client.evaluationReport(id, 'html')} target="_blank">
        Open report in a new tab
      </a>
      {formats.map(([format, words]) => (
        <a key={format} class="button small" href={client.evaluationReport(id, format)} download="">
          {words}
        </a>
      ))}
      <a class="button small" href={`/runs?evaluation=${id}`}>
        Its runs
      </a>
    </>
  );
}

export const Report = ({ id }: { id: number }) => (
  <iframe
    class="report"
    src={client.evaluationReport(id, 'html')}
    title={`Report of evaluation ${id}`}
    sandbox="allow-popups"
  />
);

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
