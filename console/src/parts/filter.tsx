/** Fields above a table that choose what it shows. */

import { useId } from 'preact/hooks';

interface SearchProps {
  label: string;
  value: string;
  change: (value: string) => void;
  hint?: string;
}

export function Search({ label, value, change, hint }: SearchProps) {
  const id = useId();
  return (
    <div>
      <label for={id}>{label}</label>
      <input
        id={id}
        type="search"
        value={value}
        placeholder={hint}
        onInput={(event) => change(event.currentTarget.value)}
      />
    </div>
  );
}

interface PickProps {
  label: string;
  value: string;
  /** Values with their words; a value alone is its own word. */
  options: readonly (string | readonly [string, string])[];
  change: (value: string) => void;
}

export function Pick({ label, value, options, change }: PickProps) {
  const id = useId();
  return (
    <div>
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => change(event.currentTarget.value)}>
        {options.map((option) => {
          const [key, words] = typeof option === 'string' ? [option, option] : option;
          return (
            <option key={key} value={key}>
              {words}
            </option>
          );
        })}
      </select>
    </div>
  );
}
