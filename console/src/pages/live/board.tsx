/** An evaluation while it goes on: arms x levels, filling in with their numbers, intervals and progress. */

import type { LiveBoard, LiveCell, LiveLoad } from '../../api';
import { latency, plural, rate } from '../../lib/format';
import { Progress } from '../../parts/bar';
import { Panel } from '../../parts/panel';

interface Row {
  subject: string;
  level: string;
}

/** The rows of a load: the levels that it lists, and those that a search found on the way. */
export function rows(load: LiveLoad, cells: readonly LiveCell[]): Row[] {
  const own = cells.filter((cell) => cell.load === load.name);
  const subjects = [...new Set(own.map((cell) => cell.subject))];
  const found = [...new Set(own.map((cell) => cell.level))];
  const levels = load.levels.length > 0 ? load.levels : found;
  return (subjects.length > 0 ? subjects : ['']).flatMap((subject) => levels.map((level) => ({ subject, level })));
}

export function Board({ board, running }: { board: LiveBoard; running: boolean }) {
  const { done, of, now, phase, cells } = board;
  const doing = now
    ? `${now.arm} · ${[now.load, now.level].filter(Boolean).join(', ')} · repeat ${now.repeat}`
    : phase || (running ? 'between runs' : '');
  return (
    <Panel
      title="Evaluation"
      aside={
        <span class="row end board-head">
          <span>
            <b>{done}</b> {of === null ? `${done === 1 ? 'run' : 'runs'} done` : `of ${plural(of, 'run')} done`}
          </span>
          {of !== null && <Progress share={of > 0 ? done / of : null} label="Runs done" />}
        </span>
      }
      flush
    >
      {running && doing && (
        <p class="board-now" role="status">
          Now: <b>{doing}</b>
        </p>
      )}
      {board.loads.map((load) => (
        <Load
          key={load.name}
          board={board}
          load={load}
          most={Math.max(
            1e-9,
            ...cells
              .filter((cell) => cell.load === load.name)
              .map((cell) => cell.throughput_interval?.[1] ?? cell.throughput),
          )}
        />
      ))}
    </Panel>
  );
}

function Load({ board, load, most }: { board: LiveBoard; load: LiveLoad; most: number }) {
  const shown = rows(load, board.cells);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`Cells of ${load.name}`}>
      <table class="board">
        <caption>
          {load.name}
          {load.searched && <small> · searching for the highest load within the service level</small>}
        </caption>
        <thead hidden={shown.length === 0}>
          <tr>
            <th scope="col">Level</th>
            {board.arms.map((arm, index) => (
              <th scope="col" key={arm}>
                {arm}
                {index === 0 && board.arms.length > 1 && <small> baseline</small>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.length === 0 && (
            <tr>
              <td colSpan={board.arms.length + 1} class="meta">
                nothing measured yet
              </td>
            </tr>
          )}
          {shown.map(({ subject, level }) => (
            <tr key={`${subject}/${level}`}>
              <th scope="row">{[subject, level].filter(Boolean).join(' · ') || 'as written'}</th>
              {board.arms.map((arm) => (
                <Cell
                  key={arm}
                  cell={board.cells.find(
                    (cell) =>
                      cell.arm === arm && cell.load === load.name && cell.level === level && cell.subject === subject,
                  )}
                  repeats={load.searched ? 0 : board.repeats}
                  now={
                    board.now?.arm === arm && board.now.load === load.name && board.now.level === level
                      ? board.now.repeat
                      : null
                  }
                  most={most}
                />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface CellProps {
  cell: LiveCell | undefined;
  /** How many repeats there may be; 0 where nobody knows. */
  repeats: number;
  /** The repeat that goes on here. */
  now: number | null;
  most: number;
}

function Cell({ cell, repeats, now, most }: CellProps) {
  const done = cell?.runs.length ?? 0;
  const dots = Math.min(12, Math.max(repeats, done + (now ? 1 : 0)));
  const repeated = `${done} of ${repeats || done} repeats measured${now ? ', one is running' : ''}`;
  return (
    <td class={now ? 'now' : done ? '' : 'open'}>
      <span class="row dots" role="img" aria-label={repeated} title={repeated}>
        {Array.from({ length: dots }, (_, index) => (
          <i key={index} class={index < done ? 'done' : index === done && now ? 'now' : ''} />
        ))}
        {cell?.objection && <small class="bad">{cell.objection}</small>}
        {cell?.meets === true && <small class="good">✓ within</small>}
        {cell?.meets === false && <small class="warn">✕ outside</small>}
      </span>
      {cell ? (
        <>
          <b>{rate(cell.throughput)}</b>
          {cell.throughput_interval && <small> {plusMinus(cell.throughput, cell.throughput_interval)}</small>}
          <Interval cell={cell} most={most} />
          <small>
            {cell.p99_us !== null && `p99 ${latency(cell.p99_us)}`}
            {cell.failed > 0 && <span class="bad"> · {plural(cell.failed, 'failure')}</span>}
          </small>
        </>
      ) : (
        <span class="meta">{now ? 'running…' : 'waiting'}</span>
      )}
    </td>
  );
}

/** `± 3.1 %`: how far the interval reaches to each side. */
const plusMinus = (mean: number, [low, high]: readonly number[]) =>
  `± ${(((high! - low!) / 2 / Math.max(mean, 1e-9)) * 100).toFixed(1)} %`;

/** The mean and its interval, on a scale that all cells of the load share. */
function Interval({ cell, most }: { cell: LiveCell; most: number }) {
  const x = (value: number) => Math.max(0, Math.min(100, (value / most) * 100));
  const [low, high] = cell.throughput_interval ?? [cell.throughput, cell.throughput];
  return (
    <svg class="interval" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect x="0" y="3" width={x(cell.throughput)} height="2" class="reach" />
      <rect x={x(low)} y="1.5" width={Math.max(0.6, x(high) - x(low))} height="5" class="between" />
      <rect x={x(cell.throughput) - 0.5} y="0" width="1" height="8" class="mean" />
    </svg>
  );
}
