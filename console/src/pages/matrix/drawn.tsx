/** The chosen metric of the rows that are shown, over runs or over workers. */

import { useMemo, useState } from 'preact/hooks';
import type { MatrixRow } from '../../api';
import { count } from '../../lib/format';
import { Chart, type Line } from '../../parts/chart';
import { Choice } from '../../parts/choice';
import type { Metric } from './metrics';
import { looks, type Over, series } from './series';

/** Lines of the same colour have strokes of their own. */
const dashes = [undefined, [6, 4], [2, 3], [10, 3, 2, 3]];

export function Drawn({ rows, metric }: { rows: readonly MatrixRow[]; metric: Metric }) {
  const [over, setOver] = useState<Over>('runs');
  const [scale, setScale] = useState<'linear' | 'log'>('linear');
  const look = useMemo(looks, []);
  const { series: drawn, left, data } = useMemo(() => series(rows, over, metric.value), [rows, over, metric]);
  const looked = look(drawn.map(({ key }) => key));
  const lines = drawn.map(({ name }, index): Line => {
    const { colour, stroke } = looked[index]!;
    const dash = dashes[stroke % dashes.length];
    return { name, colour: `--c${colour}`, dots: over === 'runs', ...(dash ? { dash } : {}) };
  });
  return (
    <div class="drawn">
      <Chart
        title={`${metric.title} over ${over}${over === 'workers' ? ', median of each workload’s runs' : ''}`}
        lines={lines}
        data={data}
        format={metric.format}
        place={over === 'runs' ? asRun : asWorkers}
        axis={over === 'runs' ? 'Run' : 'Workers'}
        log={scale === 'log'}
        height={230}
        aside={
          <>
            <Choice
              label="X axis"
              value={over}
              options={[
                ['runs', 'Runs'],
                ['workers', 'Workers'],
              ]}
              change={setOver}
            />
            <Choice
              label="Scale"
              value={scale}
              options={[
                ['linear', 'Linear'],
                ['log', 'Log'],
              ]}
              change={setScale}
            />
          </>
        }
      />
      {left > 0 && (
        <small>
          The {drawn.length} series with the most runs are drawn; filter to see the {count(left)} others.
        </small>
      )}
    </div>
  );
}

const asRun = (x: number) => `run ${x}`;
const asWorkers = (x: number) => String(x);
