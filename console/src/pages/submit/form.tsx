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
    <Panel title="A load on object storage">
      <div class="form">
        <fieldset>
          <legend>What load is put on</legend>
          <Choice
            label="Target"
            value={load.target}
            options={[
              ['embedded', 'Try out (embedded)'],
              ['s3', 'An S3 service'],
            ]}
            change={(target) => change({ target })}
          />
          <div class="fields">
            {text('name', 'Name', 'How the workload is called in lists and reports.')}
            {load.target === 's3' && (
              <>
                {text(
                  'endpoint',
                  'Endpoint',
                  'Address of the service; of several, separated by commas, workers use all evenly.',
                )}
                {text(
                  'accessKey',
                  'Access key',
                  'The name of a variable of the controller’s environment, not the key itself.',
                )}
                {text('secretKey', 'Secret key', 'As for the access key: the document never contains the secret.')}
                {text('region', 'Region', 'The region that requests are signed for; most private stores take any.')}
              </>
            )}
          </div>
        </fieldset>
        <fieldset>
          <legend>Objects</legend>
          <div class="fields">
            {number('containers', 'Containers', 'Buckets that the objects are spread over.')}
            {number(
              'objects',
              'Objects in each',
              'As many are there when the load begins; writes make as many others.',
            )}
            {number('sizeFrom', 'Size from', 'The smallest object.')}
            {number('sizeTo', 'Size to', 'The largest object; the same as the smallest makes all of one size.')}
            <Field label="Unit of sizes" help="KB is 1,000 bytes, KiB is 1,024.">
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
          <legend>Mix of operations</legend>
          <div class="fields narrow">
            {number('read', 'Read', 'Share of reads of whole objects.')}
            {number('write', 'Write', 'Share of writes of new content.')}
            {number('delete', 'Delete', 'Share of deletes; with them, only what exists is read.')}
            {number('list', 'List', 'Share of listings of 100 entries.')}
          </div>
        </fieldset>
        <fieldset>
          <legend>Pace and length</legend>
          <Choice
            label="Pace"
            value={load.pace}
            options={[
              ['workers', 'As fast as the workers can'],
              ['rate', 'At a rate of its own'],
            ]}
            change={(pace) => change({ pace })}
          />
          <div class="fields">
            {number(
              'workers',
              load.pace === 'rate' ? 'Most in flight' : 'Workers',
              load.pace === 'rate'
                ? 'The most operations that wait for answers at once.'
                : 'Clients that each begin an operation when their last one is done.',
            )}
            {load.pace === 'rate' &&
              number(
                'rate',
                'Operations per second',
                'They are due whether or not the store keeps up; latency counts from when they are due.',
              )}
            {number('seconds', 'Measured seconds', 'How long the load is measured; at least 60 for numbers that last.')}
            {number(
              'warmUpSeconds',
              'Warm-up seconds',
              'Full load before it is measured, while caches and connections settle.',
            )}
          </div>
        </fieldset>
        <fieldset>
          <legend>Around it</legend>
          <div>
            {flag(
              'prepare',
              'Make containers and objects first',
              'Leave it out only if an earlier workload left them there.',
            )}
            {flag(
              'cleanUp',
              'Delete them afterwards',
              'Everything that it made is removed, so that the next run begins with the same store.',
            )}
            {flag(
              'verify',
              'Check what is read',
              'Every object read is compared with what was written; costs some of the drivers’ time.',
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
