/** The form that writes a document: a load on a target of any kind, one sentence for each field. */

import { useId } from 'preact/hooks';
import type { ComponentChildren } from 'preact';
import type { TargetForm } from '../../api';
import { settingsOf, type Load, type Unit } from '../../document/load';
import { fields, isMain, kindOf, valueOf, type Field as TargetField, type Values } from '../../document/target';
import { Choice } from '../../parts/choice';
import { Panel } from '../../parts/panel';

interface Props {
  load: Load;
  /** All kinds of targets, and the one that is chosen. */
  targets: TargetForm[];
  target: TargetForm;
  /** What is wrong with a field. */
  said: Record<string, string>;
  change: (changes: Partial<Load>) => void;
}

type Numbers = {
  [Key in keyof Load]: Load[Key] extends number ? Key : never;
}[keyof Load];
type Flags = 'prepare' | 'cleanUp' | 'verify';

const units: Unit[] = ['B', 'KB', 'MB', 'GB', 'KiB', 'MiB', 'GiB'];

export function LoadForm({ load, targets, target, said, change }: Props) {
  const objects = target.subject === 'objects';
  const values = settingsOf(load, target);
  const enter = (path: string, value: string) =>
    change({ settings: { ...load.settings, [target.form.name]: { ...values, [path]: value } } });
  const number = (key: Numbers, label: string, help: string) => (
    <Field label={label} help={help} wrong={said[key]}>
      {(own) => (
        <input
          {...own}
          type="number"
          min={0}
          value={Number.isNaN(load[key]) ? '' : load[key]}
          onInput={(event) => change({ [key]: event.currentTarget.valueAsNumber })}
        />
      )}
    </Field>
  );
  const flag = (key: Flags, label: string, help: string) => (
    <div class="field">
      <label class="inline">
        <input
          type="checkbox"
          checked={load[key]}
          onChange={(event) => change({ [key]: event.currentTarget.checked })}
        />
        {label}
      </label>
      <p>{help}</p>
    </div>
  );
  return (
    <Panel title={objects ? 'Object storage load' : 'Block storage load'}>
      <div class="form">
        <fieldset>
          <legend>Target</legend>
          <div class="fields">
            <Field label="Name" help="The workload’s name in lists and reports." wrong={said['name']}>
              {(own) => (
                <input
                  {...own}
                  value={load.name}
                  spellcheck={false}
                  onInput={(event) => change({ name: event.currentTarget.value })}
                />
              )}
            </Field>
            <Field label="Kind of target" help={`${target.form.about.replaceAll('**', '')}.`}>
              {(own) => (
                <select
                  {...own}
                  value={target.form.name}
                  onChange={(event) => change({ target: event.currentTarget.value })}
                >
                  {targets.map(({ form }) => (
                    <option key={form.name}>{form.name}</option>
                  ))}
                </select>
              )}
            </Field>
          </div>
          <Settings fields={fields(target.form, values)} values={values} said={said} enter={enter} />
        </fieldset>
        <fieldset>
          <legend>{objects ? 'Objects' : 'Access'}</legend>
          {!objects && (
            <Choice
              label="Offsets"
              value={load.random ? 'random' : 'sequential'}
              options={[
                ['random', 'Random offsets'],
                ['sequential', 'Sequential offsets'],
              ]}
              change={(order) => change({ random: order === 'random' })}
            />
          )}
          <div class="fields">
            {objects && number('containers', 'Containers', 'Buckets to spread the objects over.')}
            {objects &&
              number(
                'objects',
                'Objects per container',
                'Created before the load starts; writes create the same number of new ones.',
              )}
            {objects
              ? number('sizeFrom', 'Size from', 'Smallest object.')
              : number('sizeFrom', 'Block size', 'Bytes of each operation: a multiple of 512 B.')}
            {!objects && number('depth', 'Depth', 'Operations in flight per client; each volume has one client.')}
            {objects && number('sizeTo', 'Size to', 'Largest object. Use the same value for a fixed size.')}
            <Field label="Size unit" help="1 KB = 1000 bytes, 1 KiB = 1024 bytes.">
              {(own) => (
                <select
                  {...own}
                  value={load.sizeUnit}
                  onChange={(event) => change({ sizeUnit: event.currentTarget.value as Unit })}
                >
                  {units.map((unit) => (
                    <option key={unit}>{unit}</option>
                  ))}
                </select>
              )}
            </Field>
          </div>
        </fieldset>
        <fieldset>
          <legend>Operation mix</legend>
          <div class="fields narrow">
            {number('read', 'Read', 'Share of reads.')}
            {number('write', 'Write', 'Share of writes.')}
            {objects && number('delete', 'Delete', 'Share of deletes; reads then use existing objects only.')}
            {objects && number('list', 'List', 'Share of listings, 100 entries each.')}
          </div>
        </fieldset>
        <fieldset>
          <legend>Pacing and duration</legend>
          <Choice
            label="Pacing"
            value={load.pace}
            options={[
              ['workers', 'As fast as possible'],
              ['rate', 'At a fixed rate'],
            ]}
            change={(pace) => change({ pace })}
          />
          <div class="fields">
            {objects &&
              number(
                'workers',
                load.pace === 'rate' ? 'Max. in flight' : 'Workers',
                load.pace === 'rate'
                  ? 'Most operations in flight at once.'
                  : 'Clients that start the next operation when the last one ends.',
              )}
            {load.pace === 'rate' &&
              number(
                'rate',
                'Operations per second',
                'Operations are due on schedule even if the storage falls behind; latency counts from the due time.',
              )}
            {number('seconds', 'Measured seconds', 'Length of the measurement. Use at least 60 for reliable numbers.')}
            {number(
              'warmUpSeconds',
              'Warm-up seconds',
              'Full load before the measurement, while caches and connections settle.',
            )}
          </div>
        </fieldset>
        <fieldset>
          <legend>Preparation and cleanup</legend>
          <div>
            {flag(
              'prepare',
              objects ? 'Create containers and objects first' : 'Write the volumes once first',
              'Clear this only if an earlier workload left them in place.',
            )}
            {flag(
              'cleanUp',
              objects ? 'Delete them afterwards' : 'Remove files and images afterwards',
              'Removes everything the workload created, so the next run starts from the same state.',
            )}
            {flag(
              'verify',
              'Verify content',
              'Compares what is read with what was written; uses CPU time on the drivers.',
            )}
          </div>
        </fieldset>
      </div>
    </Panel>
  );
}

interface SettingsProps {
  values: Values;
  said: Record<string, string>;
  enter: (path: string, value: string) => void;
}

/** The settings of a target: those that it needs, and below them all others. */
function Settings({ fields, ...rest }: SettingsProps & { fields: TargetField[] }) {
  const further = fields.filter((field) => !isMain(field));
  const list = (fields: TargetField[]) => (
    <div class="fields">
      {fields.map((field) => (
        <Setting key={field.path} field={field} {...rest} />
      ))}
    </div>
  );
  return (
    <>
      {list(fields.filter(isMain))}
      {further.length > 0 && (
        <details>
          <summary>More settings</summary>
          {list(further)}
        </details>
      )}
    </>
  );
}

/** `back_off_most` as people read it. */
const label = (name: string) => {
  const words = name.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
};

/** What to enter, in one sentence. */
function help({ key, kind }: TargetField): string {
  const about = key.about.replaceAll('`', '');
  if (kind) return `${about}: ${kind.about.replaceAll('`', '')}.`;
  if (key.secret) return `${about}: an environment variable of the controller, not the value itself.`;
  return `${about} (${key.value.replaceAll('`', '')}${key.default ? `; default: ${key.default}` : ''}).`;
}

function Setting({ field, values, said, enter }: SettingsProps & { field: TargetField }) {
  const { path, key, kind } = field;
  const choices = kind ? key.kinds.map((kind) => kind.name) : key.choices;
  const change = (event: { currentTarget: { value: string } }) =>
    enter(kind ? kindOf(path) : path, event.currentTarget.value);
  return (
    <Field label={label(key.name)} help={help(field)} wrong={said[path]}>
      {(own) =>
        choices.length > 0 ? (
          <select {...own} value={kind?.name ?? valueOf(field, values)} onChange={change}>
            {!kind && <option value="">default</option>}
            {choices.map((choice) => (
              <option key={choice}>{choice}</option>
            ))}
          </select>
        ) : (
          <input {...own} value={valueOf(field, values)} spellcheck={false} autocomplete="off" onInput={change} />
        )
      }
    </Field>
  );
}

interface Own {
  id: string;
  'aria-describedby': string;
  'aria-invalid': boolean;
}

function Field(props: { label: string; help: string; wrong?: string; children: (own: Own) => ComponentChildren }) {
  const id = useId();
  const { label, help, wrong, children } = props;
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
