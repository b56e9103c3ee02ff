/** What is chosen beside the document: priority, drivers, seed. */

import { useId, useState } from 'preact/hooks';
import type { Submit } from '../../api';
import * as client from '../../client';
import { plural } from '../../lib/format';
import { matches } from '../../lib/order';
import { useResource } from '../../lib/resource';
import { State } from '../../parts/badge';
import { Choice } from '../../parts/choice';

export interface Chosen {
  priority: number;
  drivers: 'document' | 'count' | 'names';
  count: number;
  names: string[];
  seed: string;
  skipPreflight: boolean;
}

export const firstOptions: Chosen = {
  priority: 0,
  drivers: 'document',
  count: 1,
  names: [],
  seed: '',
  skipPreflight: false,
};

/** What to send: only what was chosen, the document decides the rest. */
export function asSubmit(document: string, chosen: Chosen): Submit {
  const submit: Submit = { document, priority: chosen.priority };
  if (chosen.drivers === 'count') submit.driver_count = chosen.count;
  if (chosen.drivers === 'names') submit.drivers = chosen.names;
  if (chosen.seed.trim()) submit.seed = Number(chosen.seed);
  if (chosen.skipPreflight) submit.skip_preflight = true;
  return submit;
}

export function Options({ chosen, change }: { chosen: Chosen; change: (changes: Partial<Chosen>) => void }) {
  const id = useId();
  return (
    <>
      <div class="fields">
        <div class="field">
          <label for={`${id}p`}>Priority</label>
          <input
            id={`${id}p`}
            type="number"
            min={-100}
            max={100}
            value={chosen.priority}
            onInput={(event) => change({ priority: Math.round(event.currentTarget.valueAsNumber || 0) })}
          />
          <p>From -100 to 100; higher priorities start first.</p>
        </div>
        <div class="field">
          <label for={`${id}s`}>Seed</label>
          <input
            id={`${id}s`}
            inputMode="numeric"
            pattern="[0-9]*"
            value={chosen.seed}
            placeholder="the document's"
            onInput={(event) => change({ seed: event.currentTarget.value.replace(/\D/g, '').slice(0, 15) })}
          />
          <p>The same seed repeats the same random choices.</p>
        </div>
      </div>
      <fieldset>
        <legend>Drivers</legend>
        <Choice
          label="Drivers"
          value={chosen.drivers}
          options={[
            ['document', 'From the document'],
            ['count', 'Any free'],
            ['names', 'By name'],
          ]}
          change={(drivers) => change({ drivers })}
        />
        {chosen.drivers === 'count' && (
          <div class="field">
            <label for={`${id}c`}>How many</label>
            <input
              id={`${id}c`}
              type="number"
              min={1}
              value={chosen.count}
              onInput={(event) => change({ count: Math.max(1, Math.round(event.currentTarget.valueAsNumber || 1)) })}
            />
            <p>The submission waits until this many are free.</p>
          </div>
        )}
        {chosen.drivers === 'names' && <Names names={chosen.names} change={(names) => change({ names })} />}
      </fieldset>
      <p>
        <label class="inline">
          <input
            type="checkbox"
            checked={chosen.skipPreflight}
            onChange={(event) => change({ skipPreflight: event.currentTarget.checked })}
          />
          Skip the check that the targets respond
        </label>
      </p>
    </>
  );
}

function Names({ names, change }: { names: string[]; change: (names: string[]) => void }) {
  const { data = [], error } = useResource('drivers', client.drivers);
  const [search, setSearch] = useState('');
  const shown = data.filter((driver) => driver.state !== 'gone' && matches(search, driver.name, driver.host));
  const toggle = (name: string, on: boolean) => change(on ? [...names, name] : names.filter((other) => other !== name));
  return (
    <div class="names">
      <input
        type="search"
        aria-label="Find drivers"
        placeholder={`Search ${plural(data.length, 'driver')}`}
        value={search}
        onInput={(event) => setSearch(event.currentTarget.value)}
      />
      {error && <p class="bad">{error.message}</p>}
      <div class="list" role="group" aria-label="Drivers to run on" tabIndex={0}>
        {shown.map(({ name, state }) => (
          <label key={name} class="inline">
            <input
              type="checkbox"
              checked={names.includes(name)}
              onChange={(event) => toggle(name, event.currentTarget.checked)}
            />
            {name} <State state={state} />
          </label>
        ))}
      </div>
      <small>
        {names.length === 0 ? 'None selected: the document decides.' : `${names.length} selected: ${names.join(', ')}`}
      </small>
    </div>
  );
}
