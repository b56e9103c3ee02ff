/** The latest second in large numbers. */

import type { ComponentChildren } from 'preact';
import { bandwidth, count, duration, latency, rate, short } from '../../lib/format';
import { type Buffer, totals, type WorkSeconds } from './buffer';
import { labels } from './labels';

export function Tiles({ buffer, work }: { buffer: Buffer; work: WorkSeconds }) {
  const all = totals(buffer, work.stage);
  const last = work.seconds[work.seconds.length - 1];
  const names = labels(buffer, work);
  const operations =
    last?.operations.map((of, index) => ({ name: names[index] ?? '', of })).filter(({ of }) => of.ok > 0) ?? [];
  const [first, ...others] = operations.sort((a, b) => b.of.ok - a.of.ok);
  // Percentiles of several operations cannot be put together: the most frequent one's is large, the others' beside it.
  const times = (title: string, value: 'p50_us' | 'p99_us') => (
    <Tile
      title={first ? `${title} of ${first.name}` : title}
      more={others.map(({ name, of }) => `${name} ${latency(of[value])}`).join(' · ')}
    >
      {first ? latency(first.of[value]) : '–'}
    </Tile>
  );
  return (
    <dl class="tiles" aria-label="The latest second">
      <Tile title="Throughput" more={operations.map(({ name, of }) => `${name} ${short(of.ok)}`).join(' · ')}>
        {rate(all.ok)}
      </Tile>
      <Tile title="Bandwidth">{bandwidth(all.bytes)}</Tile>
      {times('p50', 'p50_us')}
      {times('p99', 'p99_us')}
      <Tile
        title="Errors"
        more={`${count(all.failedInAll)} in the last ${duration(all.kept * 1000)}`}
        alarm={all.failed > 0}
      >
        {count(all.failed)}/s
      </Tile>
      <Tile title="In flight">{count(all.inFlight)}</Tile>
      <Tile title="Backlog" more="due, not sent" alarm={all.backlog > 0}>
        {count(all.backlog)}
      </Tile>
    </dl>
  );
}

function Tile(props: { title: string; more?: string; alarm?: boolean; children: ComponentChildren }) {
  return (
    <div class={props.alarm ? 'alarm' : ''}>
      <dt>
        {props.alarm && <span aria-hidden="true">▲ </span>}
        {props.title}
      </dt>
      <dd>
        {props.children}
        {props.more && <small title={props.more}>{props.more}</small>}
      </dd>
    </div>
  );
}
