/** Has a document looked at while it is typed. */

import { useEffect, useState } from 'preact/hooks';
import type { Check } from '../../api';
import * as client from '../../client';

/** Pause in typing after which the controller is asked, milliseconds. */
const pause = 300;

interface Checking {
  check: Check | undefined;
  /** What is shown is of an older text. */
  pending: boolean;
  trouble: Error | undefined;
}

export function useCheck(text: string): Checking {
  const [of, set] = useState<{ text: string; check?: Check; trouble?: Error }>({ text: '' });
  useEffect(() => {
    if (!text.trim()) {
      set({ text });
      return;
    }
    let wanted = true;
    const timer = setTimeout(() => {
      client.check(text).then(
        (check) => wanted && set({ text, check }),
        (trouble: Error) => wanted && set({ text, trouble }),
      );
    }, pause);
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [text]);
  return { check: text.trim() ? of.check : undefined, pending: of.text !== text, trouble: of.trouble };
}
