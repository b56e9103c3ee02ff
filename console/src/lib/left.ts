/** Elapsed and remaining time of a submission, in words. */

import type { Submission } from '../api';
import { duration } from './format';

/** Elapsed time, and the remaining time where a forecast or the progress tells. */
export function left({ started_unix_ms, expected_ms, progress }: Submission, now = Date.now()): string {
  if (started_unix_ms === null) return '';
  const elapsed = now - started_unix_ms;
  const ran = `${duration(Math.max(0, elapsed))} elapsed`;
  const rest = expected_ms !== null ? expected_ms - elapsed : progress ? (elapsed * (1 - progress)) / progress : null;
  return rest === null ? ran : `${ran} · ${rest > 1000 ? `about ${duration(rest)} left` : 'nearly done'}`;
}
