/** What charts mark, as a list. */

import type { LiveMark } from '../../api';
import { clock } from '../../lib/format';

const tones: Record<LiveMark['kind'], string> = {
  driver_silent: 'warn',
  driver_back: 'good',
  driver_lost: 'bad',
  failures: 'bad',
  cancelled: '',
};

/** More are folded. */
const most = 6;

export function Happened({ marks, begun }: { marks: readonly LiveMark[]; begun: number }) {
  return (
    <>
      <p class="meta hint">Drag over a chart to zoom in; double-click to see all.</p>
      {marks.length > 0 && (
        <ol class="happened" aria-label="What happened">
          {marks.slice(-most).map((mark, index) => (
            <li key={index} class={tones[mark.kind]}>
              <b>{clock(Math.max(0, (mark.unix_ms - begun) / 1000))}</b> {mark.text}
            </li>
          ))}
        </ol>
      )}
      {marks.length > most && <p class="meta">and {marks.length - most} earlier</p>}
    </>
  );
}
