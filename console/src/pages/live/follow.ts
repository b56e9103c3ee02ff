/** Follows a submission: starts from `live`, goes on with events, and asks again after anything was missed. */

import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import type { LiveStage, Submission } from '../../api';
import * as client from '../../client';
import { announce } from '../../lib/announce';
import { useQuiet, useStream } from '../../lib/stream';
import { type Buffer, fromLive, isNews, putNodes, putSecond, putStages, refresh } from './buffer';

/** The page is drawn anew at most this often, milliseconds. */
const pace = 400;

export interface Following {
  submission: Submission | undefined;
  buffer: Buffer | undefined;
  error: Error | undefined;
  /** Seconds for which nothing was heard, where that is long. */
  quiet: number;
  reload: () => void;
}

export function useFollow(id: number): Following {
  const [submission, setSubmission] = useState<Submission>();
  const [error, setError] = useState<Error>();
  const [, draw] = useState(0);
  /** Whether there is such a submission. */
  const known = useRef(false);
  known.current = submission !== undefined;
  const buffer = useRef<Buffer | undefined>(undefined);
  /** Events that came before the first answer of `live`. */
  const early = useRef<[number, (buffer: Buffer) => void][]>([]);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);

  const drawSoon = () => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      draw((turn) => turn + 1);
    }, pace);
  };
  const load = useCallback(() => {
    const seen = async () => {
      const submission = await client.submission(id);
      setSubmission(submission);
      setError(undefined);
      // What has not begun has nothing live.
      if (submission.started_unix_ms === null) return;
      const live = await client.live(id);
      if (buffer.current) refresh(buffer.current, live);
      else buffer.current = fromLive(live);
      for (const [event, put] of early.current.splice(0)) take(event, put);
      drawSoon();
    };
    seen().catch((error: Error) => {
      // What ended some time ago has nothing live any more; its run has it all.
      if (!(error instanceof client.Refused && error.status === 404 && known.current)) setError(error);
    });
  }, [id]);
  useEffect(() => {
    load();
    return () => clearTimeout(timer.current);
  }, [load]);

  const take = (event: number, put: (buffer: Buffer) => void) => {
    if (!buffer.current) {
      early.current.push([event, put]);
      return;
    }
    if (!isNews(buffer.current, event)) return;
    put(buffer.current);
    drawSoon();
  };
  const stream = useStream(
    {
      second: (second, event) => take(event, (buffer) => putSecond(buffer, second)),
      nodes: (nodes, event) => take(event, (buffer) => putNodes(buffer, nodes)),
      stages: (stages, event) =>
        take(event, (buffer) => {
          const states = (of: LiveStage[]) => of.map((stage) => stage.state).join();
          const turned = states(stages) !== states(buffer.stages);
          tellStages(
            buffer,
            stages.filter((stage) => stage.state === 'running').map((stage) => stage.name),
          );
          putStages(buffer, stages);
          if (turned) client.submission(id).then(setSubmission, () => undefined);
        }),
      trouble: (trouble, event) =>
        take(event, (buffer) => {
          buffer.troubles.push(trouble);
          announce(trouble);
        }),
      mark: (mark, event) =>
        take(event, (buffer) => {
          buffer.marks.push(mark);
          buffer.turn++;
          announce(`${mark.text}.`);
        }),
      board: (board, event) =>
        take(event, (buffer) => {
          buffer.board = board;
          buffer.turn++;
        }),
      ended: (submission) => {
        setSubmission(submission);
        announce(`${submission.name} ${submission.state}.`);
        load();
      },
      overview: (overview) => {
        const mine = [...overview.active, ...overview.queue, ...overview.recent].find((one) => one.id === id);
        if (!mine) return;
        setSubmission(mine);
        if (mine.state === 'running' && !buffer.current) load();
      },
      missed: load,
      opened: load,
    },
    id,
  );
  const quiet = useQuiet(stream);
  return { submission, buffer: buffer.current, error, quiet, reload: load };
}

/** Says that a stage began. */
function tellStages(buffer: Buffer, running: string[]): void {
  const before = new Set(buffer.stages.filter((stage) => stage.state === 'running').map((stage) => stage.name));
  const begun = running.filter((name) => !before.has(name));
  if (begun.length > 0) announce(`Stage ${begun.join(', ')} began.`);
}
