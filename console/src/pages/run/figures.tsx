/** The figures of the run's report. */

import type { Figure as Named } from '../../api';
import * as client from '../../client';
import { useResource } from '../../lib/resource';
import { Figure } from '../../parts/figure';
import { Failure } from '../../parts/notice';
import { Panel } from '../../parts/panel';

/** Descriptions that are longer, characters, are folded: the figure has them for screen readers anyway. */
const longest = 240;

/** `stage`: only those of one stage. */
export function Figures({ run, stage }: { run: number; stage?: string }) {
  const { data: all, error, reload } = useResource(`figures ${run}`, () => client.figures(run));
  const data = all?.filter((figure) => stage === undefined || figure.stage === stage);
  if (error) return <Failure error={error} again={reload} />;
  if (!data || data.length === 0) return null;
  const several = new Set(data.map((figure) => figure.stage)).size > 1;
  return (
    <Panel title="Figures">
      <div class="figures">
        {data.map((figure) => (
          <One key={figure.name} run={run} figure={figure} several={several} />
        ))}
      </div>
    </Panel>
  );
}

function One({ run, figure, several }: { run: number; figure: Named; several: boolean }) {
  const { data, error } = useResource(`figure ${run} ${figure.name}`, () => client.figure(run, figure.name));
  return (
    <figure>
      {several && figure.stage && <figcaption>{figure.stage}</figcaption>}
      {data ? <Figure svg={data} /> : <div class="coming">{error ? error.message : figure.title}</div>}
      {figure.description.length > longest ? (
        <details>
          <summary>Description</summary>
          <p class="meta">{figure.description}</p>
        </details>
      ) : (
        <p class="meta">{figure.description}</p>
      )}
    </figure>
  );
}
