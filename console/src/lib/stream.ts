/** The controller's events, for as long as a page is shown; reconnects by itself and says when it is quiet. */

import { useEffect, useRef, useState } from 'preact/hooks';
import type { Live } from '../api';
import { events } from '../client';
import { serverSent } from './sse';

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

/** Pause before another try, milliseconds. */
const pause = 3000;

/** Follows the events of a submission, or overviews. Handlers may change from call to call. */
export function useStream(handlers: Handlers, submission?: number): { current: Stream } {
  const now = useRef(handlers);
  now.current = handlers;
  const state = useRef<Stream>({ connected: false, heard: 0 });
  useEffect(() => {
    const left = new AbortController();
    let again: ReturnType<typeof setTimeout> | undefined;
    let connections = 0;
    const listen = async () => {
      const body = await events(submission, left.signal);
      state.current.connected = true;
      state.current.heard = Date.now();
      if (connections++ > 0) now.current.opened?.();
      for await (const { name, data, id } of serverSent(body)) {
        state.current.heard = Date.now();
        const handler = now.current[name as keyof LiveEvents] as ((content: unknown, id: number) => void) | undefined;
        try {
          handler?.(JSON.parse(data), Number(id));
        } catch (error) {
          // A defect of the page is no reason to listen anew.
          reportError(error);
        }
      }
    };
    const follow = () => {
      // Whether it was refused or has ended: the next try finds out more.
      const ended = () => {
        state.current.connected = false;
        if (!left.signal.aborted) again = setTimeout(follow, pause);
      };
      listen().then(ended, ended);
    };
    follow();
    return () => {
      clearTimeout(again);
      left.abort();
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
