/** A chart of live data or of many runs (uPlot), with its numbers as a table for those who cannot see it. */

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { colour, useColours } from '../lib/theme';
import './chart.css';

export interface Line {
  name: string;
  /** A variable of the style sheet. */
  colour: string;
  dash?: number[];
  /** Dots instead of a line. */
  dots?: boolean;
}

/** A moment that charts point out. */
export interface Mark {
  at: number;
  tone: 'bad' | 'warn' | 'good' | 'note';
  /** A letter for its place in the drawing. */
  letter: string;
  text: string;
}

/** A stretch that charts point out. */
export interface Band {
  from: number;
  to: number;
  /** `hatched`: the numbers lack something; `soft`: not measured; `plain`: only named. */
  look: 'hatched' | 'soft' | 'plain';
  text: string;
}

interface Props {
  title: string;
  lines: readonly Line[];
  /** Positions, ascending, then the values of each line. */
  data: readonly (readonly (number | null)[])[];
  /** A value with its unit. */
  format: (value: number) => string;
  /** A position in words. */
  place: (x: number) => string;
  /** What the positions are. */
  axis: string;
  log?: boolean;
  height?: number;
  /** Charts of the same name move their cursors together. */
  together?: string;
  marks?: readonly Mark[];
  bands?: readonly Band[];
  /** The stretch that is shown; all of it where there is none. */
  zoom?: readonly [number, number] | null;
  /** Is told the stretch that the user drew; null for a double click. */
  onZoom?: (zoom: [number, number] | null) => void;
  aside?: preact.ComponentChildren;
}

/** Rows of the table, at most. */
const mostRows = 60;

export function Chart(props: Props) {
  const { title, lines, data, format, place, axis } = props;
  const [table, setTable] = useState(false);
  const [at, setAt] = useState<number | null>(null);
  const last = (data[0]?.length ?? 0) - 1;
  const shown = Math.min(at ?? last, last);
  return (
    <figure class="chart">
      <figcaption>
        <span class="row">
          {title}
          <span class="row end">
            {props.aside}
            <button
              class="small plain"
              aria-pressed={table}
              aria-label={`${title} as a table`}
              onClick={() => setTable(!table)}
            >
              Table
            </button>
          </span>
        </span>
        <span class="legend">
          {lines.map((line, index) => {
            const value = data[index + 1]?.[shown];
            return (
              <span key={line.name}>
                <Swatch line={line} />
                {line.name} <b>{value === null || value === undefined ? '–' : format(value)}</b>
              </span>
            );
          })}
          {at !== null && <small>at {place(data[0]?.[shown] ?? 0)}</small>}
        </span>
      </figcaption>
      {table ? (
        <div class="data" tabIndex={0} role="region" aria-label={`${title}, table`} style={{ maxHeight: '240px' }}>
          <table>
            <thead>
              <tr>
                <th scope="col">
                  <span>{axis}</span>
                </th>
                {lines.map((line) => (
                  <th scope="col" class="n" key={line.name}>
                    <span>{line.name}</span>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {latest(data).map((row) => (
                <tr key={row[0]}>
                  <th scope="row">{place(row[0] ?? 0)}</th>
                  {row.slice(1).map((value, index) => (
                    <td class="n" key={index}>
                      {value === null ? '–' : format(value)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <Drawing {...props} hover={setAt} />
      )}
    </figure>
  );
}

/** The latest rows, the newest first. */
function latest(data: Props['data']): (number | null)[][] {
  const length = data[0]?.length ?? 0;
  return Array.from({ length: Math.min(length, mostRows) }, (_, at) =>
    data.map((column) => column[length - 1 - at] ?? null),
  );
}

function Swatch({ line }: { line: Line }) {
  return (
    <svg width="18" height="8" aria-hidden="true">
      {line.dots ? (
        <circle cx="9" cy="4" r="3.5" style={{ fill: `var(${line.colour})` }} />
      ) : (
        <path
          d="M0 4H18"
          style={{ stroke: `var(${line.colour})`, strokeWidth: '2.5', strokeDasharray: line.dash?.join(' ') ?? 'none' }}
        />
      )}
    </svg>
  );
}

/** In words, for screen readers: what each line is at its end, and between what it was. */
function inWords({ title, lines, data, format, marks, place }: Props): string {
  const said = lines.map(({ name }, index) => {
    const values = (data[index + 1] ?? []).filter((value) => value !== null);
    if (values.length === 0) return `${name}: nothing yet.`;
    const [least, most] = values.reduce(
      ([a, b], value) => [Math.min(a, value), Math.max(b, value)],
      [Infinity, -Infinity],
    );
    return `${name}: between ${format(least)} and ${format(most)}.`;
  });
  const marked = (marks ?? []).slice(-10).map((mark) => `${mark.text} at ${place(mark.at)}.`);
  return `${title}. ${[...said, ...marked].join(' ')}`;
}

function Drawing(props: Props & { hover: (at: number | null) => void }) {
  const { lines, data, log = false, height = 190, format, place, together, hover, zoom, onZoom } = props;
  const pointed = useRef({ marks: props.marks, bands: props.bands, onZoom });
  pointed.current = { marks: props.marks, bands: props.bands, onZoom };
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const colours = useColours();
  const key = JSON.stringify(lines);
  // A logarithm has no zero.
  const drawn = useMemo(
    () =>
      log
        ? data.map((column, index) => (index ? column.map((value) => (value && value > 0 ? value : null)) : column))
        : data,
    [data, log],
  );
  useEffect(() => {
    const place_ = host.current;
    if (!place_) return;
    const options = asOptions({
      ...{ lines, log, height, format, place, together, hover, width: place_.clientWidth },
      zooms: onZoom !== undefined,
      pointed,
    });
    plot.current = new uPlot(options, drawn as unknown as uPlot.AlignedData, place_);
    const sizes = new ResizeObserver(() => plot.current?.setSize({ width: place_.clientWidth, height }));
    sizes.observe(place_);
    return () => {
      sizes.disconnect();
      plot.current?.destroy();
    };
  }, [key, log, height, colours, format, together]);
  useEffect(() => {
    const [from, to] = zoom ?? [drawn[0]?.[0] ?? 0, drawn[0]?.[drawn[0].length - 1] ?? 1];
    plot.current?.setData(drawn as unknown as uPlot.AlignedData, false);
    plot.current?.setScale('x', { min: from ?? 0, max: Math.max(to ?? 1, (from ?? 0) + 1) });
  }, [drawn, zoom?.[0], zoom?.[1], key, log, height, colours]);
  useEffect(() => plot.current?.redraw(false), [props.marks, props.bands]);
  return (
    <div
      class="drawing"
      ref={host}
      role="img"
      aria-label={inWords(props)}
      style={{ height: `${height}px` }}
      onDblClick={() => onZoom?.(null)}
    />
  );
}

type Pointed = { current: { marks: Props['marks']; bands: Props['bands']; onZoom: Props['onZoom'] } };

/** Draws bands behind the lines. */
function drawBands(plot: uPlot, bands: readonly Band[]): void {
  const { ctx, bbox } = plot;
  const scale = devicePixelRatio || 1;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.font = `${10 * scale}px system-ui, sans-serif`;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'top';
  for (const { from, to, look, text } of bands) {
    const left = plot.valToPos(from, 'x', true);
    const width = plot.valToPos(to, 'x', true) - left;
    if (look === 'soft') {
      ctx.fillStyle = colour('--soft');
      ctx.fillRect(left, bbox.top, width, bbox.height);
    }
    if (look === 'hatched') hatch(ctx, left, bbox.top, width, bbox.height, colour('--warn'));
    if (look === 'plain') {
      ctx.fillStyle = colour('--rule');
      ctx.fillRect(left, bbox.top, scale, bbox.height);
    }
    ctx.fillStyle = colour('--muted');
    // Where the band begins before the drawing, its name stands at the drawing's edge.
    const seen = Math.max(left, bbox.left);
    if (Math.min(left + width, bbox.left + bbox.width) - seen > ctx.measureText(text).width + 6 * scale) {
      ctx.fillText(text, seen + 4 * scale, bbox.top + (look === 'plain' ? 2 : 18) * scale);
    }
  }
  ctx.restore();
}

/** Fills an area with slanted lines. */
export function hatch(
  ctx: CanvasRenderingContext2D,
  ...[left, top, width, height, ink]: [number, number, number, number, string]
): void {
  const scale = devicePixelRatio || 1;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, width, height);
  ctx.clip();
  ctx.strokeStyle = ink;
  ctx.globalAlpha = 0.7;
  ctx.lineWidth = scale;
  ctx.beginPath();
  // In step with the whole drawing, so that neighbours join.
  const step = 6 * scale;
  for (let at = Math.floor((left - height) / step) * step; at < left + width; at += step) {
    ctx.moveTo(at, top + height);
    ctx.lineTo(at + height, top);
  }
  ctx.stroke();
  ctx.restore();
}

const tones = { bad: '--bad', warn: '--warn', good: '--good', note: '--accent' };

/** Draws marks over the lines: a line from top to bottom with its letter. */
function drawMarks(plot: uPlot, marks: readonly Mark[]): void {
  const { ctx, bbox } = plot;
  const scale = devicePixelRatio || 1;
  ctx.save();
  ctx.font = `600 ${10 * scale}px system-ui, sans-serif`;
  ctx.textAlign = 'center';
  ctx.textBaseline = 'middle';
  for (const { at, tone, letter } of marks) {
    const left = plot.valToPos(at, 'x', true);
    if (left < bbox.left || left > bbox.left + bbox.width) continue;
    const ink = colour(tones[tone]);
    ctx.strokeStyle = ink;
    ctx.lineWidth = scale;
    ctx.setLineDash([4 * scale, 3 * scale]);
    ctx.beginPath();
    ctx.moveTo(left, bbox.top + 14 * scale);
    ctx.lineTo(left, bbox.top + bbox.height);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.fillStyle = ink;
    ctx.beginPath();
    ctx.arc(left, bbox.top + 8 * scale, 7 * scale, 0, 2 * Math.PI);
    ctx.fill();
    ctx.fillStyle = colour('--paper');
    ctx.fillText(letter, left, bbox.top + 8.5 * scale);
  }
  ctx.restore();
}

/** Room for labels, pixels: what does not fit is cut off. */
const widest = (labels: readonly string[] | null) =>
  Math.max(44, ...(labels ?? []).map((label) => 16 + 6.4 * (label?.length ?? 0)));

/** Whole powers of ten around the values. */
const decades = (least: number | null, most: number | null): [number, number] =>
  least && most ? [10 ** Math.floor(Math.log10(least)), 10 ** Math.ceil(Math.log10(most * 1.001))] : [1, 10];

/** From zero to a little above the values. */
const fromZero = (least: number | null, most: number | null): [number, number] => [
  Math.min(0, least ?? 0),
  most && most > 0 ? most * 1.08 : 1,
];

/** Between marks of the positions, which are whole: seconds, minutes, and round numbers of runs. */
const steps = [1, 2, 5, 10, 20, 30, 60, 100, 120, 200, 300, 600, 1000, 1800, 3600, 5000, 10_000, 50_000];

type Drawn = Pick<Props, 'lines' | 'format' | 'place' | 'together'> & {
  log: boolean;
  width: number;
  height: number;
  hover: (at: number | null) => void;
  zooms: boolean;
  pointed: Pointed;
};

function asOptions({
  lines,
  log,
  width,
  height,
  format,
  place,
  together,
  hover,
  zooms,
  pointed,
}: Drawn): uPlot.Options {
  const font = '11px system-ui, sans-serif';
  const axis = {
    stroke: colour('--muted'),
    font,
    grid: { stroke: colour('--grid'), width: 1 },
    ticks: { show: false },
  };
  return {
    width,
    height,
    legend: { show: false },
    // The last label of the positions is centred below its mark.
    padding: [8, 26, 0, 0],
    cursor: {
      y: false,
      points: { size: 6 },
      drag: { x: zooms, y: false, setScale: false },
      ...(together ? { sync: { key: together } } : {}),
    },
    scales: {
      x: { time: false },
      y: log
        ? { distr: 3, range: (_, least, most) => decades(least, most) }
        : { range: (_, least, most) => fromZero(least, most) },
    },
    axes: [
      { ...axis, size: 26, values: (_, values) => values.map(place), space: 70, incrs: steps },
      {
        ...axis,
        size: (_, values) => widest(values),
        values: (_, values) => values.map((value) => (value === null ? '' : format(value))),
        space: 32,
      },
    ],
    series: [
      {},
      ...lines.map((line): uPlot.Series => ({
        label: line.name,
        stroke: colour(line.colour),
        width: line.dots ? 0 : 1.8,
        ...(line.dots
          ? { paths: () => null, points: { show: true, size: 6, fill: colour(line.colour) } }
          : { points: { size: 4 } }),
        ...(line.dash ? { dash: line.dash } : {}),
      })),
    ],
    hooks: {
      setCursor: [(plot) => hover(plot.cursor.idx ?? null)],
      drawClear: [(plot) => drawBands(plot, pointed.current.bands ?? [])],
      draw: [(plot) => drawMarks(plot, pointed.current.marks ?? [])],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < 4) return;
          const ends = [left, left + width].map((at) => plot.posToVal(at, 'x')) as [number, number];
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          pointed.current.onZoom?.([Math.floor(ends[0]), Math.ceil(ends[1])]);
        },
      ],
    },
  };
}
