/** How long a submission will take yet, in words. */

import type { Submission } from '../api';
import { duration } from './format';

/** How long it will take yet, from what it was expected to take. */
export function left({ started_unix_ms, expected_ms, progress }: Submission, now = Date.now()): string {
  if (started_unix_ms === null) return '';
  const elapsed = now - started_unix_ms;
  const ran = `${duration(Math.max(0, elapsed))} so far`;
  const rest = expected_ms !== null ? expected_ms - elapsed : progress ? (elapsed * (1 - progress)) / progress : null;
  return rest === null ? ran : `${ran} · ${rest > 1000 ? `about ${duration(rest)} left` : 'nearly done'}`;
}
