/** Who is looking, and what they may do: told once at the top, asked for anywhere. */

import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Info } from '../api';

export const Session = createContext<Info | null>(null);

export function useInfo(): Info {
  const info = useContext(Session);
  if (!info) throw new Error('pages are shown only once the controller has said who is looking');
  return info;
}

/** Whether there are buttons that change something. */
export const useOperator = () => useInfo().role === 'operator';
