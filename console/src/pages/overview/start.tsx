/** What an overview without anything on it says: how to begin. */

import type { Overview } from '../../api';
import { hand } from '../../lib/handed';
import { go } from '../../lib/router';
import { useInfo } from '../../lib/session';
import { Demo } from '../../parts/demo';
import { Drop, DropZone } from '../../parts/drop';
import { Panel } from '../../parts/panel';
import { Join } from './join';

/** Whether nothing was ever done here. */
export const isNew = ({ active, queue, recent }: Overview) => active.length + queue.length + recent.length === 0;

export function Start({ overview }: { overview: Overview }) {
  const { largest_document } = useInfo();
  const ready = overview.drivers.filter((driver) => driver.state !== 'gone').length;
  const take = (text: string, name: string) => {
    hand({ text, name });
    go('/submit');
  };
  return (
    <Panel title="Get started" class="start">
      <ol>
        <li>
          <h3>
            Drivers <span class={ready > 0 ? 'good' : 'warn'}>{ready > 0 ? `✓ ${ready} joined` : '○ none yet'}</span>
          </h3>
          <p>
            {ready > 0
              ? 'They generate the load. To add another machine, run this there:'
              : 'They generate the load: runs wait until one joins. Run this on each machine that should:'}
          </p>
          <Join drivers={overview.drivers} />
        </li>
        <li>
          <h3>A first run</h3>
          <p>The demo reads and writes objects on a server of its own for half a minute. Nothing else is touched.</p>
          <Demo main />
        </li>
        <li>
          <h3>Your own</h3>
          <Drop take={take} most={largest_document}>
            {(choose) => (
              <DropZone choose={choose('Choose a file…')}>
                <a class="button small" href="/submit?form">
                  Use the form
                </a>
              </DropZone>
            )}
          </Drop>
        </li>
      </ol>
    </Panel>
  );
}
