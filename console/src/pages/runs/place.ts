/** Where a run stands in its evaluation, in words. */

import type { HistoryRow } from '../../api';

/** `disk · web, workers 8 · #2`. */
export const place = ({ arm, load, level, repeat }: HistoryRow) =>
  [arm, [load, level].filter(Boolean).join(', '), repeat > 0 ? `#${repeat}` : ''].filter(Boolean).join(' · ');
