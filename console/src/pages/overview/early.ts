/** Asks for the overview before it is known who is looking: the first page is there one round trip earlier. */

import type { Overview } from '../../api';
import * as client from '../../client';

let asked: Promise<Overview> | undefined;

export function ask(): void {
  asked = client.overview();
  // Whoever takes it hears of a refusal.
  asked.catch(() => undefined);
}

/** The answer, once: who comes back to the page later asks anew. */
export function take(): Promise<Overview> | undefined {
  const once = asked;
  asked = undefined;
  return once;
}
