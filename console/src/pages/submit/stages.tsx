/** The loads of a form, one after the other: each is a stage of the document. */

import type { ComponentChildren } from 'preact';
import type { TargetForm } from '../../api';
import { chosenOf, furtherKeys, volumeKeys, type Load, type Stage, type VolumeStage } from '../../document/load';
import { fields, type Values } from '../../document/target';
import { Choice } from '../../parts/choice';
import { Field, Settings } from './setting';

interface Props {
  load: Load;
  target: TargetForm;
  said: Record<string, string>;
  change: (changes: Partial<Load>) => void;
}

/** Settings of loads on volumes and databases that most people want to see. */
const mainOfVolumes = new Set([
  'workload',
  'tables',
  'table_size',
  'pattern',
  'block_size',
  'depth',
  'clients',
  'reads',
  'rate',
  'for',
  'warm_up',
  'repeats',
]);

/** A name that no other stage has: `main-2`. */
function another(names: string[], name: string): string {
  const stem = name.replace(/-\d+$/, '') || 'load';
  let number = 2;
  while (names.includes(`${stem}-${number}`)) number++;
  return `${stem}-${number}`;
}

/** The stages of one kind of load: cards that can be added, changed and removed. */
function Cards<T extends { name: string }>(props: {
  stages: T[];
  set: (stages: T[]) => void;
  path: string;
  said: Record<string, string>;
  card: (stage: T, change: (changes: Partial<T>) => void, at: number, name: ComponentChildren) => ComponentChildren;
}) {
  const { stages, set, path, said, card } = props;
  const names = stages.map((stage) => stage.name);
  return (
    <div class="stages">
      {stages.map((stage, at) => {
        const change = (changes: Partial<T>) => set(stages.with(at, { ...stage, ...changes }));
        const name = (
          <Field label="Load name" help="Of its stage, in reports." wrong={said[`${path}.${at}.name`]}>
            {(own) => (
              <input
                {...own}
                value={stage.name}
                spellcheck={false}
                onInput={(event) => change({ name: event.currentTarget.value } as Partial<T>)}
              />
            )}
          </Field>
        );
        return (
          <fieldset key={at} class="stage">
            <legend>
              Load {stages.length > 1 && at + 1}
              {stages.length > 1 && (
                <button
                  type="button"
                  class="small plain"
                  aria-label={`Remove load ${stage.name}`}
                  onClick={() => set(stages.filter((_, other) => other !== at))}
                >
                  Remove
                </button>
              )}
            </legend>
            {card(stage, change, at, name)}
          </fieldset>
        );
      })}
      <button
        type="button"
        class="add"
        onClick={() => set([...stages, { ...stages.at(-1)!, name: another(names, stages.at(-1)!.name) }])}
      >
        + Add a load after it
      </button>
    </div>
  );
}

export function Stages(props: Props) {
  return props.target.subject === 'objects' ? <OnObjects {...props} /> : <OnVolumes {...props} />;
}

function OnVolumes({ load, target, said, change }: Props) {
  const form = volumeKeys(target);
  return (
    <Cards<VolumeStage>
      stages={load.volumeStages}
      set={(volumeStages) => change({ volumeStages })}
      path="volumeStages"
      said={said}
      card={({ values }, set, at, name) => (
        <Settings
          before={name}
          fields={fields(form, values).map((field) => ({ ...field, begins: false }))}
          main={({ key }) => mainOfVolumes.has(key.name)}
          values={chosenOf(form, values)}
          wrong={(path) => said[`volumeStages.${at}.${path}`]}
          enter={(path, value) => set({ values: { ...values, [path]: value } })}
          sweep
        />
      )}
    />
  );
}

type Numbers = { [Key in keyof Stage]: Stage[Key] extends number ? Key : never }[keyof Stage];

function OnObjects({ load, target, said, change }: Props) {
  const further = furtherKeys(target);
  return (
    <Cards<Stage>
      stages={load.stages}
      set={(stages) => change({ stages })}
      path="stages"
      said={said}
      card={(stage, set, at, name) => {
        const number = (key: Numbers, label: string, help: string) => (
          <Field label={label} help={help} wrong={said[`stages.${at}.${key}`]}>
            {(own) => (
              <input
                {...own}
                type="number"
                min={0}
                value={Number.isNaN(stage[key]) ? '' : stage[key]}
                onInput={(event) => set({ [key]: event.currentTarget.valueAsNumber })}
              />
            )}
          </Field>
        );
        const open = stage.pace === 'rate' && !load.sweep;
        const more: Values = stage.more;
        return (
          <>
            <div class="parts">
              <div>
                <div class="fields">{name}</div>
                <div class="fields narrow">
                  {number('read', 'Read', 'Share of reads.')}
                  {number('write', 'Write', 'Share of writes.')}
                  {number('delete', 'Delete', 'Share of deletes.')}
                  {number('list', 'List', 'Share of listings.')}
                </div>
              </div>
              <div>
                {!load.sweep && (
                  <Choice
                    label="Pacing"
                    value={stage.pace}
                    options={[
                      ['workers', 'As fast as possible'],
                      ['rate', 'At a fixed rate'],
                    ]}
                    change={(pace) => set({ pace })}
                  />
                )}
                <div class="fields">
                  {!load.sweep &&
                    number(
                      'workers',
                      open ? 'Max. in flight' : 'Workers',
                      open
                        ? 'Most operations in flight at once.'
                        : 'Clients that start the next operation when the last one ends.',
                    )}
                  {open &&
                    number(
                      'rate',
                      'Operations per second',
                      'Due on schedule even if the storage falls behind; latency counts from the due time.',
                    )}
                  {number('seconds', 'Measured seconds', 'Use at least 60 for reliable numbers.')}
                  {number('warmUpSeconds', 'Warm-up seconds', 'Full load before the measurement, while caches settle.')}
                </div>
              </div>
            </div>
            <Settings
              fields={fields(further, more).map((field) => ({ ...field, begins: false }))}
              main={() => false}
              values={more}
              wrong={() => undefined}
              enter={(path, value) => set({ more: { ...more, [path]: value } })}
            />
          </>
        );
      }}
    />
  );
}
