/** The chosen metric of the rows that are shown, over runs or over workers. */

import { useMemo, useState } from 'preact/hooks';
import type { MatrixRow } from '../../api';
import { Chart, type Line } from '../../parts/chart';
import { Choice } from '../../parts/choice';
import type { Metric } from './metrics';
import { type Over, series } from './series';

export function Drawn({ rows, metric }: { rows: readonly MatrixRow[]; metric: Metric }) {
  const [over, setOver] = useState<Over>('runs');
  const [scale, setScale] = useState<'linear' | 'log'>('linear');
  const { operations, data } = useMemo(() => series(rows, over, metric.value), [rows, over, metric]);
  const lines = operations.map((name, index): Line => ({ name, colour: `--c${index}`, dots: over === 'runs' }));
  return (
    <div class="drawn">
      <Chart
        title={`${metric.title} over ${over}${over === 'workers' ? ', median of the runs' : ''}`}
        lines={lines}
        data={data}
        format={metric.format}
        place={over === 'runs' ? asRun : asWorkers}
        axis={over === 'runs' ? 'Run' : 'Workers'}
        log={scale === 'log'}
        height={210}
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
    </div>
  );
}

const asRun = (x: number) => `run ${x}`;
const asWorkers = (x: number) => String(x);
