/** What users wrote beside a run: a note and tags. */

import { useState } from 'preact/hooks';
import type { Remark } from '../../api';
import * as client from '../../client';
import { announce } from '../../lib/announce';
import { useResource } from '../../lib/resource';
import { useOperator } from '../../lib/session';
import { useAction } from '../../parts/action';
import { Notice } from '../../parts/notice';

export function Remarks({ id }: { id: number }) {
  const { data, reload } = useResource(`remark ${id}`, () => client.remark(id));
  const operator = useOperator();
  const [editing, edit] = useState(false);
  if (!data) return null;
  if (editing) {
    const done = () => {
      edit(false);
      reload();
    };
    return <Edit id={id} remark={data} done={done} />;
  }
  const empty = !data.note && data.tags.length === 0;
  if (empty && !operator) return null;
  return (
    <div class="remarks row">
      {data.tags.map((tag) => (
        <a key={tag} class="tag" href={`/runs?tag=${encodeURIComponent(tag)}`}>
          {tag}
        </a>
      ))}
      {data.note && <span class="note">{data.note}</span>}
      {operator && (
        <button class="small" onClick={() => edit(true)}>
          {empty ? 'Add a note or tags' : 'Edit note and tags'}
        </button>
      )}
    </div>
  );
}

function Edit({ id, remark, done }: { id: number; remark: Remark; done: () => void }) {
  const [note, setNote] = useState(remark.note);
  const [tags, setTags] = useState(remark.tags.join(', '));
  const { busy, error, act } = useAction();
  const save = () =>
    act(async () => {
      await client.setRemark(id, {
        note,
        tags: tags
          .split(',')
          .map((tag) => tag.trim())
          .filter(Boolean),
      });
      announce('Saved.');
      done();
    });
  return (
    <form
      class="remarks-edit"
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      <label>
        Tags, with commas between
        <input value={tags} onInput={(event) => setTags(event.currentTarget.value)} />
      </label>
      <label>
        Note
        <textarea rows={3} maxLength={4000} value={note} onInput={(event) => setNote(event.currentTarget.value)} />
      </label>
      <span class="row">
        <button class="main" disabled={busy}>
          Save
        </button>
        <button type="button" onClick={done}>
          Leave as it was
        </button>
      </span>
      {error && <Notice tone="bad">{error.message}</Notice>}
    </form>
  );
}
