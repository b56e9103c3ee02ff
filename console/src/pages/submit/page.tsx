/** Submitting: a document that is uploaded, written or made by a form, checked as it grows, and what to do with it. */

import { useCallback, useMemo, useState } from 'preact/hooks';
import type { Problem } from '../../api';
import * as client from '../../client';
import { firstLoad, objections, type Load } from '../../document/load';
import { write } from '../../document/write';
import { announce } from '../../lib/announce';
import { bytes } from '../../lib/format';
import { taken } from '../../lib/handed';
import { useResource } from '../../lib/resource';
import { go } from '../../lib/router';
import { useInfo, useOperator } from '../../lib/session';
import { useAction } from '../../parts/action';
import { Choice } from '../../parts/choice';
import { Demo } from '../../parts/demo';
import { Drop, DropZone } from '../../parts/drop';
import { Notice } from '../../parts/notice';
import { Panel } from '../../parts/panel';
import type { PageProps } from '../../routes';
import { Checked } from './checked';
import { useCheck } from './check';
import { Editor } from './editor';
import { LoadForm } from './form';
import { asSubmit, firstOptions, Options, type Chosen } from './options';
import './submit.css';

type Way = 'text' | 'form';

export function SubmitPage({ address }: PageProps) {
  const operator = useOperator();
  const { largest_document } = useInfo();
  const [way, setWay] = useState<Way>(address.searchParams.has('form') ? 'form' : 'text');
  const [typed, setTyped] = useState(() => taken()?.text ?? '');
  const [load, setLoad] = useState<Load>(firstLoad);
  const [options, setOptions] = useState<Chosen>(firstOptions);
  const [goTo, setGoTo] = useState<Problem>();
  const { busy, error, act } = useAction();

  const targets = useResource('targets', client.targets);
  const target = targets.data?.find(({ form }) => form.name === load.target) ?? targets.data?.[0];
  const said = useMemo(() => (target ? objections(load, target) : {}), [load, target]);
  const text = way === 'text' ? typed : target ? write(load, target) : '';
  // Secrets of the form are for the controller, not for those who look over the user's shoulder.
  const shown = way === 'form' && target ? write(load, target, true) : text;
  const { check, pending, trouble } = useCheck(text);
  const tooLarge = new TextEncoder().encode(text).length > largest_document;
  const ready = operator && check?.ok && !pending && !tooLarge && (way === 'text' || Object.keys(said).length === 0);

  const take = useCallback((text: string, name: string) => {
    setTyped(text);
    setWay('text');
    announce(`${name} loaded.`);
  }, []);
  const submit = () =>
    act(async () => {
      const submission = await client.submit(asSubmit(text, options));
      announce(`${submission.name} was submitted.`);
      go(`/w/${submission.id}`);
    });

  return (
    <Drop take={take} most={largest_document}>
      {(choose) => (
        <>
          <div class="page-head">
            <h1>Submit</h1>
            <Choice
              label="How to create the document"
              value={way}
              options={[
                ['text', 'Upload or edit'],
                ['form', 'Use a form'],
              ]}
              change={setWay}
            />
          </div>
          {!operator && <Notice tone="note">You can check documents here. Only operators can submit them.</Notice>}
          {error && <Notice tone="bad">{error.message}</Notice>}
          {tooLarge && <Notice tone="bad">The document exceeds the limit of {bytes(largest_document)}.</Notice>}
          {way === 'form' && targets.error && <Notice tone="bad">{targets.error.message}</Notice>}
          {way === 'form' && targets.data && target && (
            <LoadForm
              load={load}
              targets={targets.data}
              target={target}
              said={said}
              change={(changes) => setLoad({ ...load, ...changes })}
            />
          )}
          <div class="columns">
            <div>
              <Panel
                title="Document"
                flush
                aside={
                  <span class="row end">
                    {way === 'form' ? (
                      <button class="small" onClick={() => take(text, 'The form’s document')}>
                        Edit as text
                      </button>
                    ) : (
                      typed && choose('Choose a file…')
                    )}
                  </span>
                }
              >
                {way === 'text' && !typed && (
                  <DropZone choose={choose('Choose a file…')}>{operator && <Demo />}</DropZone>
                )}
                <Editor
                  text={shown}
                  change={way === 'text' ? setTyped : undefined}
                  problems={check?.problems ?? []}
                  goTo={goTo}
                />
              </Panel>
            </div>
            <div>
              <Checked
                check={check}
                pending={pending}
                trouble={trouble}
                empty={!text.trim()}
                show={(problem) => setGoTo({ ...problem })}
              />
              {operator && (
                <Panel title="Run options">
                  <Options chosen={options} change={(changes) => setOptions({ ...options, ...changes })} />
                  <button class="main" disabled={!ready || busy} onClick={submit}>
                    {busy ? 'Submitting…' : 'Submit'}
                  </button>
                </Panel>
              )}
            </div>
          </div>
        </>
      )}
    </Drop>
  );
}
