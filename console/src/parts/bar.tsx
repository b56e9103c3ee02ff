/** How much of something: progress, load. */

import { percent } from '../lib/format';

/** How far something is, 0 to 1; without a number where that cannot be told. */
export function Progress({ share, label }: { share: number | null; label: string }) {
  if (share === null) return <span class="meta">length not known</span>;
  const whole = Math.round(Math.min(1, Math.max(0, share)) * 100);
  return (
    <span
      class="bar"
      role="progressbar"
      aria-label={label}
      aria-valuenow={whole}
      aria-valuemin={0}
      aria-valuemax={100}
      title={`${whole} %`}
    >
      <i style={{ width: `${whole}%` }} />
    </span>
  );
}

/** How busy something is, with its number; amber above 80 %, red above 95 %. */
export function Load({ share }: { share: number }) {
  const level = share > 0.95 ? 'over' : share > 0.8 ? 'high' : '';
  return (
    <span class="load">
      <span class={`bar ${level}`} aria-hidden="true">
        <i style={{ width: `${Math.min(100, share * 100)}%` }} />
      </span>
      <span class="n">{percent(Math.round(share * 100) / 100)}</span>
    </span>
  );
}
