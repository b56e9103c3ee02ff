/** The latest second in large numbers. */

import type { ComponentChildren } from 'preact';
import { bandwidth, count, duration, latency, rate, short } from '../../lib/format';
import { type Buffer, totals, type WorkSeconds } from './buffer';
import { labels } from './labels';

interface Props {
  buffer: Buffer;
  work: WorkSeconds;
  /** Drivers of the run. */
  drivers: number;
  /** Those of them that do not take part now. */
  away: { silent: string[]; lost: string[] };
}

export function Tiles({ buffer, work, drivers, away }: Props) {
  const gone = away.silent.length + away.lost.length;
  const partly = gone > 0 ? `from ${drivers - gone} of ${drivers} drivers` : '';
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
      <Tile
        title="Throughput"
        partly={partly}
        more={operations.map(({ name, of }) => `${name} ${short(of.ok)}`).join(' · ')}
      >
        {rate(all.ok)}
      </Tile>
      <Tile title="Bandwidth" partly={partly}>
        {bandwidth(all.bytes)}
      </Tile>
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
      {drivers > 0 && (
        <Tile
          title="Drivers"
          more={[
            away.silent.length > 0 && `silent: ${away.silent.join(', ')}`,
            away.lost.length > 0 && `lost: ${away.lost.join(', ')}`,
          ]
            .filter(Boolean)
            .join(' · ')}
          alarm={gone > 0}
        >
          {gone > 0 ? `${drivers - gone} of ${drivers}` : count(drivers)}
        </Tile>
      )}
    </dl>
  );
}

interface TileProps {
  title: string;
  more?: string;
  /** That the number is not that of all drivers. */
  partly?: string;
  alarm?: boolean;
  children: ComponentChildren;
}

export function Tile(props: TileProps) {
  return (
    <div class={props.alarm ? 'alarm' : ''}>
      <dt>
        {props.alarm && <span aria-hidden="true">▲ </span>}
        {props.title}
      </dt>
      <dd>
        {props.children}
        {props.partly && <small class="warn">▼ {props.partly}</small>}
        {props.more && <small title={props.more}>{props.more}</small>}
      </dd>
    </div>
  );
}
