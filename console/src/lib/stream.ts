/** The controller's events, for as long as a page is shown; reconnects by itself and says when it is quiet. */

import { useEffect, useRef, useState } from 'preact/hooks';
import type { Live } from '../api';
import { eventsAddress, info } from '../client';

type Name<Event> = Event extends unknown ? keyof Event : never;

/** Events of the stream: name and content. */
type LiveEvents = { [N in Name<Live>]: Extract<Live, Record<N, unknown>>[N] };

/** What to do with events. `opened` is called at every connection after the first: something may have been missed. */
export type Handlers = { [Name in keyof LiveEvents]?: (content: LiveEvents[Name], id: number) => void } & {
  opened?: () => void;
};

export interface Stream {
  connected: boolean;
  /** When the last event came, by this browser's clock; 0 before the first. */
  heard: number;
}

const names: (keyof LiveEvents)[] = [
  'overview',
  'second',
  'stages',
  'nodes',
  'trouble',
  'mark',
  'board',
  'ended',
  'missed',
];

/** Pause before another try where the browser has given up, milliseconds. */
const pause = 3000;

/** Follows the events of a submission, or overviews. Handlers may change from call to call. */
export function useStream(handlers: Handlers, submission?: number): { current: Stream } {
  const now = useRef(handlers);
  now.current = handlers;
  const state = useRef<Stream>({ connected: false, heard: 0 });
  useEffect(() => {
    let source: EventSource;
    let again: ReturnType<typeof setTimeout> | undefined;
    let connections = 0;
    const open = () => {
      source = new EventSource(eventsAddress(submission));
      source.onopen = () => {
        state.current.connected = true;
        state.current.heard = Date.now();
        if (connections++ > 0) now.current.opened?.();
      };
      source.onerror = () => {
        state.current.connected = false;
        if (source.readyState !== EventSource.CLOSED) return;
        // Why it was refused is not told; if a login is needed, this finds out.
        info().catch(() => undefined);
        again = setTimeout(open, pause);
      };
      for (const name of names) {
        source.addEventListener(name, (event) => {
          state.current.heard = Date.now();
          const handler = now.current[name] as ((content: unknown, id: number) => void) | undefined;
          handler?.(JSON.parse(event.data as string), Number(event.lastEventId));
        });
      }
    };
    open();
    return () => {
      clearTimeout(again);
      source.close();
    };
  }, [submission]);
  return state;
}

/** Seconds for which nothing was heard, once that is long; 0 otherwise. Looks once a second and redraws only on changes. */
export function useQuiet(stream: { current: Stream }, longest = 8): number {
  const [quiet, set] = useState(0);
  useEffect(() => {
    const look = () => {
      const seconds = stream.current.heard ? Math.floor((Date.now() - stream.current.heard) / 1000) : 0;
      set(seconds > longest || (!stream.current.connected && seconds > 1) ? seconds : 0);
    };
    const timer = setInterval(look, 1000);
    return () => clearInterval(timer);
  }, [stream, longest]);
  return quiet;
}
