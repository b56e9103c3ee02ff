/** Something that is fetched for a page: loading, there, or refused. */

import { useCallback, useEffect, useRef, useState } from 'preact/hooks';

export interface Resource<T> {
  data: T | undefined;
  error: Error | undefined;
  loading: boolean;
  reload: () => void;
}

/** Fetches when `key` changes or on demand; an answer that comes after the next question is dropped. */
export function useResource<T>(key: string, fetch: () => Promise<T>): Resource<T> {
  const [state, set] = useState<{ key: string; data?: T; error?: Error; loading: boolean }>({ key, loading: true });
  const latest = useRef(0);
  const load = useCallback(() => {
    const turn = ++latest.current;
    const tell = (result: { data?: T; error?: Error }) => {
      if (turn === latest.current) set({ key, loading: false, ...result });
    };
    set((before) => (before.key === key ? { ...before, loading: true } : { key, loading: true }));
    fetch().then(
      (data) => tell({ data }),
      (error: Error) => tell({ error }),
    );
  }, [key]);
  useEffect(() => {
    load();
    return () => void latest.current++;
  }, [load]);
  return { data: state.data, error: state.error, loading: state.loading, reload: load };
}
