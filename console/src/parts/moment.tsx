/** A local time, short, with everything in its tooltip. */

import { fullMoment, moment } from '../lib/format';

export function Moment({ at }: { at: number | null }) {
  if (at === null || at === 0) return <span class="meta">–</span>;
  return (
    <time dateTime={new Date(at).toISOString()} title={fullMoment(at)}>
      {moment(at)}
    </time>
  );
}
