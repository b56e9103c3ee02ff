/** A line without axes that shows how something went. */

interface Props {
  values: readonly number[];
  /** What it shows, in words with the latest value. */
  label: string;
  height?: number;
  /** The value at the upper edge; the largest where it is left out. */
  most?: number;
}

export function Spark({ values, label, height = 28, most }: Props) {
  const top = Math.max(most ?? Math.max(...values), 1e-9);
  const step = 100 / Math.max(1, values.length - 1);
  const points = values.map(
    (value, index) => `${(index * step).toFixed(2)} ${(1 - Math.min(1, value / top)).toFixed(4)}`,
  );
  const line = points.length > 1 ? `M${points.join('L')}` : '';
  return (
    <svg
      class="spark"
      viewBox="0 -0.05 100 1.1"
      height={height}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      {line && <path class="area" d={`${line}L100 1L0 1Z`} />}
      {line && <path d={line} />}
    </svg>
  );
}
