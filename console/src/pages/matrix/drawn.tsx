/** The chosen metric of the rows that are shown, over runs or over workers. */

import { useMemo, useState } from 'preact/hooks';
import type { MatrixRow } from '../../api';
import { count } from '../../lib/format';
import { Chart, type Line } from '../../parts/chart';
import { Choice } from '../../parts/choice';
import type { Metric } from './metrics';
import { mostLines, numbering, type Over, series } from './series';

/** Lines beyond the colours have their own strokes. */
const dashes = [undefined, [6, 4], [2, 3], [10, 3, 2, 3]];

/** How a series looks, by its number. */
const looks = (number: number): Pick<Line, 'colour' | 'dash'> => {
  const dash = dashes[Math.floor(number / mostLines) % dashes.length];
  return { colour: `--c${number % mostLines}`, ...(dash ? { dash } : {}) };
};

export function Drawn({ rows, metric }: { rows: readonly MatrixRow[]; metric: Metric }) {
  const [over, setOver] = useState<Over>('runs');
  const [scale, setScale] = useState<'linear' | 'log'>('linear');
  const number = useMemo(numbering, []);
  const { series: drawn, left, data } = useMemo(() => series(rows, over, metric.value), [rows, over, metric]);
  const lines = drawn.map(({ key, name }): Line => ({ name, dots: over === 'runs', ...looks(number(key)) }));
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
