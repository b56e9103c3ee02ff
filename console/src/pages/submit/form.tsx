/** The form that writes a document: loads on a target of any kind, one sentence for each field. */

import type { TargetForm } from '../../api';
import { firstLoad, levelsOf, items, runsOf, settingsOf, workOf, type Load } from '../../document/load';
import { fields, isMain } from '../../document/target';
import { isSweep } from '../../document/write';
import { plural } from '../../lib/format';
import { Choice } from '../../parts/choice';
import { Panel } from '../../parts/panel';
import { Field, Settings } from './setting';
import { Stages } from './stages';

interface Props {
  load: Load;
  /** All kinds of targets, and the one that is chosen. */
  targets: TargetForm[];
  target: TargetForm;
  /** What is wrong with a field. */
  said: Record<string, string>;
  change: (changes: Partial<Load>) => void;
}

/** What the form is called, and what happens before and after the loads, by what they are on. */
const subjects: Record<string, { title: string; before: string; after: string }> = {
  objects: {
    title: 'Object storage load',
    before: 'Create containers and objects first',
    after: 'Delete them afterwards',
  },
  volumes: {
    title: 'Block storage load',
    before: 'Write the volumes once first',
    after: 'Remove files and images afterwards',
  },
  databases: {
    title: 'Database load',
    before: 'Load the data set first',
    after: 'Drop its tables afterwards',
  },
};

type Flags = 'prepare' | 'cleanUp' | 'verify';
type Texts = 'name' | 'sizes' | 'levels' | 'serviceLevel';
type Numbers = 'containers' | 'objects' | 'repeats';

/** Sizes that a sweep begins with. */
const swept = (sizes: string) => (sizes === firstLoad.sizes ? '4KiB, 64KiB, 1MiB' : sizes);

export function LoadForm({ load, targets, target, said, change }: Props) {
  const objects = target.subject === 'objects';
  const subject = subjects[target.subject] ?? subjects.volumes!;
  const sweep = isSweep(load, target);
  const values = settingsOf(load, target);
  const enter = (path: string, value: string) =>
    change({ settings: { ...load.settings, [target.form.name]: { ...values, [path]: value } } });
  const words = (key: Texts, label: string, help: string, placeholder = '') => (
    <Field label={label} help={help} wrong={said[key]}>
      {(own) => (
        <input
          {...own}
          value={load[key]}
          placeholder={placeholder}
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
          min={1}
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
    <Panel title={subject.title}>
      <div class="form">
        <fieldset>
          <legend>Target</legend>
          <div class="fields">
            {words('name', 'Name', sweep ? 'The evaluation’s name.' : 'The workload’s name in lists and reports.')}
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
          <Settings
            fields={fields(target.form, values)}
            main={isMain}
            values={values}
            wrong={(path) => said[path]}
            enter={enter}
          />
        </fieldset>
        {objects && (
          <fieldset>
            <legend>Objects</legend>
            <Choice
              label="What is measured"
              value={load.sweep ? 'sweep' : 'once'}
              options={[
                ['once', 'One load'],
                ['sweep', 'Sweep of sizes and workers'],
              ]}
              change={(way) =>
                change(
                  way === 'sweep'
                    ? { sweep: true, sizes: swept(load.sizes) }
                    : { sweep: false, sizes: items(load.sizes)[0] ?? '' },
                )
              }
            />
            <div class="fields">
              {sweep
                ? words(
                    'sizes',
                    'Object sizes',
                    'One load of each: 4KiB, 64KiB, 1MiB. A range such as 4-64KiB is one load.',
                  )
                : words('sizes', 'Object size', 'Such as 64KiB, or 4-64KiB for all sizes between.')}
              {sweep && words('levels', 'Workers', 'Each size is measured with each of these.')}
              {sweep && number('repeats', 'Repeats', 'Of each combination; intervals need two, useful ones three.')}
              {sweep &&
                words(
                  'serviceLevel',
                  'Service level',
                  'Optional: the best load that meets it is found.',
                  'p95 <= 200ms + size / 1MBps',
                )}
              {number('containers', 'Containers', 'Buckets to spread the objects over.')}
              {number('objects', 'Objects per container', 'Written before the load; its writes make as many new ones.')}
            </div>
            {sweep && runsOf(load) > 0 && (
              <p class="sum" role="status">
                {plural(items(load.sizes).length, 'size')} × {plural(levelsOf(load.levels)?.length ?? 0, 'level')} ×{' '}
                {plural(load.repeats, 'repeat')} = <strong>{plural(runsOf(load), 'run')}</strong>
              </p>
            )}
          </fieldset>
        )}
        <fieldset>
          <legend>Before and after</legend>
          {flag('prepare', subject.before, 'Clear this only if an earlier workload left them in place.')}
          {workOf(target, 'cleanup') &&
            flag(
              'cleanUp',
              subject.after,
              'Removes everything the workload created, so the next run starts from the same state.',
            )}
          {flag(
            'verify',
            'Verify content',
            'Compares what is read with what was written; uses CPU time on the drivers.',
          )}
        </fieldset>
      </div>
      <Stages load={load} target={target} said={said} change={change} />
    </Panel>
  );
}
