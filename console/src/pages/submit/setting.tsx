/** Fields of a form: those that keys of documents declare, and the frame that all have. */

import { useId } from 'preact/hooks';
import type { ComponentChildren } from 'preact';
import type { FormKey } from '../../api';
import { kindOf, valueOf, type Field as KeyField, type Values } from '../../document/target';
import { items } from '../../document/load';

/** What connects an input with its label and its help. */
export interface Own {
  id: string;
  'aria-describedby': string;
  'aria-invalid': boolean;
}

interface FieldProps {
  label: string;
  help: ComponentChildren;
  wrong?: string;
  children: (own: Own) => ComponentChildren;
}

export function Field({ label, help, wrong, children }: FieldProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, 'aria-describedby': `${id}h`, 'aria-invalid': wrong !== undefined })}
      <p id={`${id}h`} class={wrong ? 'bad' : ''}>
        {wrong ? `✕ ${wrong}` : help}
      </p>
    </div>
  );
}

/** `back_off_most` as people read it. */
const label = (name: string) => {
  const words = name.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
};

const plain = (words: string) => words.replaceAll('`', '').replaceAll('**', '');

/** What a key is for: of what is long, the beginning. */
const short = (about: string) => (about.length > 90 ? about.split(/[;:,]/)[0]! : about);

/** What to enter, in one sentence. */
function help({ key, kind }: KeyField, sweep: boolean): string {
  const about = short(plain(key.about));
  if (kind) return `${about}: ${plain(kind.about)}.`;
  if (key.secret) return `${about}, or \${TIDEMARK_SECRET_…} for a variable of the controller.`;
  if (key.choices.length > 0) return `${about}${key.default ? ` (default: ${key.default})` : ''}.`;
  const value = plain(key.value).replace(/;? or list.*$/, '');
  const several = sweep && key.list ? 'several, with commas, make a sweep' : '';
  const parts = [value === 'text' ? '' : value, key.default && `default: ${key.default}`, several].filter(Boolean);
  return parts.length > 0 ? `${about} (${parts.join('; ')}).` : `${about}.`;
}

interface SettingsProps {
  /** What stands before all fields. */
  before?: ComponentChildren;
  fields: KeyField[];
  /** Which fields are shown at once; the others are folded. */
  main: (field: KeyField) => boolean;
  values: Values;
  /** What is wrong with a field, by its path. */
  wrong: (path: string) => string | undefined;
  enter: (path: string, value: string) => void;
  /** Whether lists of values make a sweep. */
  sweep?: boolean;
}

/** Settings that keys declare: the main ones, and below them all others. */
export function Settings({ before, fields, main, ...rest }: SettingsProps) {
  const further = fields.filter((field) => !main(field));
  const list = (fields: KeyField[], before?: ComponentChildren) => (
    <div class="fields">
      {before}
      {fields.map((field) => (
        <Setting key={field.path} field={field} {...rest} />
      ))}
    </div>
  );
  const given = further.filter((field) => valueOf(field, rest.values) !== '').length;
  return (
    <>
      {fields.some(main) && list(fields.filter(main), before)}
      {further.length > 0 && (
        <details class="further">
          <summary>More settings{given > 0 && ` (${given} set)`}</summary>
          {list(further)}
        </details>
      )}
    </>
  );
}

type SettingProps = Omit<SettingsProps, 'fields' | 'main' | 'before'> & { field: KeyField };

function Setting({ field, values, wrong, enter, sweep = false }: SettingProps) {
  const { path, key, kind } = field;
  const isMapping = key.kinds.length > 0;
  const choices = isMapping ? key.kinds.map((kind) => kind.name) : key.choices;
  const now = valueOf(field, values);
  if (!kind && key.list && key.choices.length > 0) {
    return (
      <Several
        name={label(key.name)}
        help={help(field, sweep)}
        wrong={wrong(path)}
        {...{ key_: key, now }}
        enter={(value) => enter(path, value)}
      />
    );
  }
  const change = (event: { currentTarget: { value: string } }) =>
    enter(isMapping ? kindOf(path) : path, event.currentTarget.value);
  return (
    <Field label={label(key.name)} help={help(field, sweep)} wrong={wrong(path)}>
      {(own) =>
        choices.length > 0 ? (
          <select {...own} value={kind?.name ?? now} onChange={change}>
            {!(isMapping && key.required) && <option value="">{isMapping ? 'none' : 'default'}</option>}
            {choices.map((choice) => (
              <option key={choice}>{choice}</option>
            ))}
          </select>
        ) : key.secret ? (
          <input
            {...own}
            // Whoever looks over the user's shoulder may read the name of a variable.
            type={(now === '' || now.startsWith('$') ? 'text' : 'password') as 'text'}
            value={now}
            placeholder={key.example}
            spellcheck={false}
            autocomplete="off"
            onInput={change}
          />
        ) : (
          <input
            {...own}
            value={now}
            placeholder={key.example || key.default}
            spellcheck={false}
            autocomplete="off"
            onInput={change}
          />
        )
      }
    </Field>
  );
}

interface SeveralProps {
  name: string;
  help: string;
  wrong: string | undefined;
  key_: FormKey;
  now: string;
  enter: (value: string) => void;
}

/** One or several of some words: each a button that can be pressed. */
function Several({ name, help, wrong, key_, now, enter }: SeveralProps) {
  const id = useId();
  const chosen = items(now);
  const toggle = (word: string) =>
    enter(key_.choices.filter((one) => (one === word) !== chosen.includes(one)).join(', '));
  return (
    <div class="field whole">
      <span class="label" id={id}>
        {name}
      </span>
      <div class="several" role="group" aria-labelledby={id}>
        {key_.choices.map((word) => (
          <button key={word} type="button" aria-pressed={chosen.includes(word)} onClick={() => toggle(word)}>
            {word}
          </button>
        ))}
      </div>
      <p class={wrong ? 'bad' : ''}>{wrong ? `✕ ${wrong}` : `${help} Several make a sweep.`}</p>
    </div>
  );
}
