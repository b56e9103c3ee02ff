/** A strip of colour for each row, darker where there is more; readable with a hundred of them. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { colour, useColours } from '../../lib/theme';
import { hatch } from '../../parts/chart';
import type { Strips } from './strips';

interface Props {
  strips: Strips;
  label: string;
  format: (value: number) => string;
  place: (x: number) => string;
  /** The value of the darkest colour; the largest where it is left out. */
  whole?: number | undefined;
}

/** Room for a name: where rows are lower, not every one has its own. */
const nameHeight = 13;
const nameWidth = 92;
/** Lower rows have no gap between them: it would be most of what is seen. */
const gapHeight = 8;

const rowHeight = (rows: number) => Math.max(5, Math.min(18, Math.floor(480 / Math.max(1, rows))));

export function Heat({ strips, label, format, place, whole }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [at, setAt] = useState<[row: number, column: number]>();
  const colours = useColours();
  const height = rowHeight(strips.names.length);
  const most = whole ?? Math.max(1e-9, ...strips.values.map((row) => Math.max(...row.map((value) => value ?? 0))));

  useEffect(() => {
    const box = canvas.current?.parentElement;
    if (!box) return;
    const sizes = new ResizeObserver(() => setWidth(box.clientWidth));
    sizes.observe(box);
    return () => sizes.disconnect();
  }, []);
  useEffect(() => {
    if (canvas.current && width > 0) draw(canvas.current, strips, { width, height, most });
  }, [strips, width, height, most, colours]);

  const pointed = (event: PointerEvent) => {
    const area = canvas.current?.getBoundingClientRect();
    if (!area) return;
    const row = Math.floor((event.clientY - area.top) / height);
    const column = Math.floor(((event.clientX - area.left - nameWidth) / (area.width - nameWidth)) * strips.columns);
    setAt(strips.names[row] !== undefined && column >= 0 ? [row, column] : undefined);
  };
  const value = at && strips.values[at[0]]?.[at[1]];
  const words = at
    ? `${strips.names[at[0]]} at ${place(strips.start + at[1])}: ${value === null || value === undefined ? 'silent' : format(value)}`
    : 'One row per driver, by name. Point at a cell to read its value.';
  return (
    <div class="heat">
      <div>
        <canvas
          ref={canvas}
          role="img"
          aria-label={`${label}. Choose Table for the numbers.`}
          style={{ height: `${height * strips.names.length}px` }}
          onPointerMove={pointed}
          onPointerLeave={() => setAt(undefined)}
        />
      </div>
      <div class="row scale">
        <small>{words}</small>
        <small class="end" aria-hidden="true">
          0 <span class="ramp" /> {format(most)}
        </small>
      </div>
    </div>
  );
}

interface Sizes {
  width: number;
  height: number;
  most: number;
}

function draw(canvas: HTMLCanvasElement, strips: Strips, { width, height, most }: Sizes): void {
  const scale = devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * strips.names.length * scale);
  const context = canvas.getContext('2d');
  if (!context) return;
  context.scale(scale, scale);
  context.font = '11px system-ui, sans-serif';
  context.textBaseline = 'middle';
  const [ink, fill] = [colour('--muted'), colour('--c0')];
  const [silent, paper] = [colour('--warn'), colour('--warn-soft')];
  const column = (width - nameWidth) / strips.columns;
  const every = Math.ceil(nameHeight / height);
  const gap = height < gapHeight ? 0 : 1;
  strips.values.forEach((row, index) => {
    const top = index * height;
    if (index % every === 0) {
      context.globalAlpha = 1;
      context.fillStyle = ink;
      context.fillText(strips.names[index] ?? '', 0, top + height / 2, nameWidth - 8);
    }
    context.fillStyle = fill;
    row.forEach((value, at) => {
      // Where others told something and this one did not.
      if (value === null) {
        const told = strips.values.some((other) => other[at] !== null);
        context.globalAlpha = 1;
        context.fillStyle = paper;
        if (told) context.fillRect(nameWidth + at * column, top, column + 0.5, height - gap);
        context.fillStyle = fill;
        if (told) hatch(context, nameWidth + at * column, top, column, height - gap, silent);
        return;
      }
      // The faintest is not nothing: a driver that told zero differs from one that told nothing.
      context.globalAlpha = 0.06 + 0.94 * Math.min(1, value / most);
      context.fillRect(nameWidth + at * column, top, column + 0.5, height - gap);
    });
  });
}
