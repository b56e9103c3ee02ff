/** What nodes do: small lines side by side, those under load first. */

import { useState } from 'preact/hooks';
import type { LiveNode } from '../../api';
import { bandwidth, memory, percent } from '../../lib/format';
import { matches } from '../../lib/order';
import { Badge } from '../../parts/badge';
import { Search } from '../../parts/filter';
import { Panel } from '../../parts/panel';
import { Spark } from '../../parts/spark';

/** With more nodes than this there is a search. */
const many = 12;

export function Nodes({ nodes }: { nodes: Map<string, LiveNode[]> }) {
  const [search, setSearch] = useState('');
  if (nodes.size === 0) return null;
  const shown = [...nodes.entries()]
    .filter(([name]) => matches(search, name))
    .sort(
      ([a, one], [b, other]) =>
        Number(one[0]?.generates) - Number(other[0]?.generates) || a.localeCompare(b, 'en', { numeric: true }),
    );
  return (
    <Panel title={nodes.size === 1 ? 'Node' : `${nodes.size} nodes`} flush>
      {nodes.size > many && (
        <div class="filters">
          <Search label="Name" value={search} change={setSearch} />
        </div>
      )}
      <ul class="nodes" tabIndex={0} aria-label="Nodes">
        {shown.map(([name, samples]) => (
          <Node key={name} name={name} samples={samples} />
        ))}
      </ul>
    </Panel>
  );
}

function Node({ name, samples }: { name: string; samples: LiveNode[] }) {
  const last = samples[samples.length - 1];
  if (!last) return null;
  const busy = percent(Math.round(last.cpu_busy * 100) / 100);
  const moved = last.received_per_s + last.sent_per_s;
  return (
    <li>
      <div class="row">
        <strong>{name}</strong>
        {last.generates ? (
          <small>driver</small>
        ) : (
          <Badge tone="accent" mark="◆">
            storage
          </Badge>
        )}
      </div>
      <div class="line">
        <small>CPU</small>
        <Spark values={samples.map((one) => one.cpu_busy)} most={1} label={`CPU of ${name}, now ${busy}`} height={22} />
        <span class={last.cpu_busy > 0.95 ? 'n bad' : 'n'}>{busy}</span>
      </div>
      <div class="line">
        <small>Net</small>
        <Spark
          values={samples.map((one) => one.received_per_s + one.sent_per_s)}
          label={`Network of ${name}, now ${bandwidth(moved)}`}
          height={22}
        />
        <span class="n">{bandwidth(moved)}</span>
      </div>
      <small>{memory(last.memory_used_bytes)} memory used</small>
    </li>
  );
}
