/** The form that writes a document: a load on object storage, one sentence for each field. */

import { useId } from 'preact/hooks';
import type { ComponentChildren } from 'preact';
import type { Load, Unit } from '../../document/load';
import { Choice } from '../../parts/choice';
import { Panel } from '../../parts/panel';

interface Props {
  load: Load;
  /** What is wrong with a field. */
  said: Partial<Record<keyof Load, string>>;
  change: (changes: Partial<Load>) => void;
}

type Texts = 'name' | 'endpoint' | 'accessKey' | 'secretKey' | 'region';
type Numbers = {
  [Key in keyof Load]: Load[Key] extends number ? Key : never;
}[keyof Load];
type Flags = 'prepare' | 'cleanUp' | 'verify';

const units: Unit[] = ['B', 'KB', 'MB', 'GB', 'KiB', 'MiB', 'GiB'];

export function LoadForm({ load, said, change }: Props) {
  const text = (key: Texts, label: string, help: string) => (
    <Field label={label} help={help} wrong={said[key]}>
      {(own) => (
        <input
          {...own}
          value={load[key]}
          spellcheck={false}
          onInput={(event) => change({ [key]: event.currentTarget.value })}
        />
      )}
    </Field>
  );
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
    <Panel title="Object storage load">
      <div class="form">
        <fieldset>
          <legend>Target</legend>
          <Choice
            label="Target"
            value={load.target}
            options={[
              ['embedded', 'Built-in test server'],
              ['s3', 'S3 service'],
            ]}
            change={(target) => change({ target })}
          />
          <div class="fields">
            {text('name', 'Name', 'The workload’s name in lists and reports.')}
            {load.target === 's3' && (
              <>
                {text(
                  'endpoint',
                  'Endpoint',
                  'URL of the service. With several, separated by commas, workers are spread evenly.',
                )}
                {text('accessKey', 'Access key', 'An environment variable of the controller, not the key itself.')}
                {text('secretKey', 'Secret key', 'Also a variable: the document never contains the secret.')}
                {text('region', 'Region', 'The region used to sign requests. Most private services accept any.')}
              </>
            )}
          </div>
        </fieldset>
        <fieldset>
          <legend>Objects</legend>
          <div class="fields">
            {number('containers', 'Containers', 'Buckets to spread the objects over.')}
            {number(
              'objects',
              'Objects per container',
              'Created before the load starts; writes create the same number of new ones.',
            )}
            {number('sizeFrom', 'Size from', 'Smallest object.')}
            {number('sizeTo', 'Size to', 'Largest object. Use the same value for a fixed size.')}
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
            {number('read', 'Read', 'Share of whole-object reads.')}
            {number('write', 'Write', 'Share of writes.')}
            {number('delete', 'Delete', 'Share of deletes; reads then use existing objects only.')}
            {number('list', 'List', 'Share of listings, 100 entries each.')}
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
            {number(
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
              'Create containers and objects first',
              'Clear this only if an earlier workload left them in place.',
            )}
            {flag(
              'cleanUp',
              'Delete them afterwards',
              'Removes everything the workload created, so the next run starts from the same state.',
            )}
            {flag(
              'verify',
              'Verify content',
              'Compares every object read with what was written; uses CPU time on the drivers.',
            )}
          </div>
        </fieldset>
      </div>
    </Panel>
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
