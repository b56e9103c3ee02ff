/** One of a few, as buttons side by side. */

interface Props<T extends string> {
  label: string;
  value: T;
  options: readonly (readonly [T, string])[];
  change: (value: T) => void;
}

export function Choice<T extends string>({ label, value, options, change }: Props<T>) {
  return (
    <span class="choice" role="group" aria-label={label}>
      {options.map(([option, words]) => (
        <button key={option} type="button" aria-pressed={option === value} onClick={() => change(option)}>
          {words}
        </button>
      ))}
    </span>
  );
}
