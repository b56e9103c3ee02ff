/** A submission's document, edited and submitted again, with what was changed. */

import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Check, Problem } from '../../api';
import * as client from '../../client';
import { announce } from '../../lib/announce';
import { useResource } from '../../lib/resource';
import { go } from '../../lib/router';
import { useOperator } from '../../lib/session';
import { useAction } from '../../parts/action';
import { Failure, Notice } from '../../parts/notice';
import { Panel } from '../../parts/panel';
import type { PageProps } from '../../routes';
import { Problems } from '../submit/checked';
import { Editor } from '../submit/editor';
import '../submit/submit.css';
import './edit.css';
import { diff, hunks } from './diff';

/** Pause in typing after which the controller is asked, milliseconds. */
const pause = 300;

export function EditPage({ id }: PageProps) {
  const { data, error, reload } = useResource(`document ${id}`, () => client.submittedDocument(id));
  if (error) return <Failure error={error} again={reload} />;
  if (data === undefined) return <p class="meta">Loading…</p>;
  return <Edit id={id} original={data} />;
}

function Edit({ id, original }: { id: number; original: string }) {
  const operator = useOperator();
  const [text, setText] = useState(original);
  const [goTo, setGoTo] = useState<Problem>();
  const { check, trouble, pending } = useChecked(text, id);
  const { busy, error, act } = useAction();
  const lines = useMemo(() => diff(original, text), [original, text]);
  const changed = lines.some((line) => line.sign !== ' ');
  const problems = check?.problems ?? [];
  const submit = () =>
    act(async () => {
      const next = await client.submit({ document: text, from: id });
      announce(`${next.name} was submitted.`);
      go(`/w/${next.id}`);
    });
  return (
    <>
      <div class="page-head">
        <h1>Edit and submit again</h1>
        <p class="meta">
          The document of <a href={`/w/${id}`}>submission w{id}</a>
          {original.includes('***') && '. Hidden values (***) are put back in lines that stay as they are.'}
        </p>
      </div>
      <Panel
        title="Document"
        flush
        class="edited"
        aside={
          <span class="row end">
            {changed && (
              <button class="small" onClick={() => setText(original)}>
                Undo all changes
              </button>
            )}
          </span>
        }
      >
        <Editor text={text} change={setText} problems={problems} {...(goTo ? { goTo } : {})} />
      </Panel>
      {problems.length > 0 && <Problems problems={problems} show={(problem) => setGoTo({ ...problem })} />}
      {trouble && <Notice tone="bad">{trouble.message}</Notice>}
      <Panel title={changed ? 'What you changed' : 'Nothing is changed yet'} flush>
        {changed && (
          <pre class="diff" aria-label="Changes" tabIndex={0}>
            {hunks(lines).map((line, index) =>
              line ? (
                <span key={index} class={line.sign === '+' ? 'in' : line.sign === '-' ? 'out' : ''}>
                  {line.sign} {line.text}
                </span>
              ) : (
                <span key={index} class="gap" aria-hidden="true">
                  ⋯
                </span>
              ),
            )}
          </pre>
        )}
      </Panel>
      {error && <Notice tone="bad">{error.message}</Notice>}
      {operator && (
        <span class="row">
          <button class="main" disabled={busy || pending || !check?.ok} onClick={submit}>
            {changed ? 'Submit the changed document' : 'Submit it unchanged'}
          </button>
          <a class="button" href={`/w/${id}`}>
            Back to w{id}
          </a>
        </span>
      )}
    </>
  );
}

/** What the controller says of the text, with the hidden values of the submission put back. */
function useChecked(text: string, from: number) {
  const [of, set] = useState<{ text: string; check?: Check; trouble?: Error }>({ text: '' });
  useEffect(() => {
    let wanted = true;
    const timer = setTimeout(() => {
      client.check(text, from).then(
        (check) => wanted && set({ text, check }),
        (trouble: Error) => wanted && set({ text, trouble }),
      );
    }, pause);
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [text, from]);
  return { check: of.check, trouble: of.trouble, pending: of.text !== text };
}
