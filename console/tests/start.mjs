/** A controller at which nothing was ever done says how to begin: a command to copy, the demo, a file that is dropped. */

import assert from 'node:assert/strict';
import { drop, mock, open, violations } from './harness.mjs';

export const name = 'start';

export async function test(chrome) {
  const server = await mock('--empty');
  try {
    const { page, errors, close } = await open(chrome, server.address);
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('heading', { name: 'Get started' }).waitFor();
    assert.deepEqual(await violations(page), []);
    const command = `tidemark driver --join ${server.address} --name driver1`;
    await page.getByText(command).waitFor();
    await page.getByRole('button', { name: 'Copy' }).click();
    await page.getByText('✓ Copied').waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), command);

    await drop(page, '.dropzone', 'w.yaml', 'name: dropped\ntarget: embedded\nstages: []\n');
    await page.waitForURL(/\/submit$/);
    assert.match(await page.getByRole('textbox', { name: 'Document' }).inputValue(), /^name: dropped\n/);

    await page.goto(server.address);
    const sent = page.waitForRequest(
      (request) => request.method() === 'POST' && request.url().endsWith('/submissions'),
    );
    await page.getByRole('button', { name: 'Run the demo' }).click();
    assert.match((await sent).postDataJSON().document, /^name: demo$/m);
    await page.waitForURL(/\/w\/\d+$/);
    assert.deepEqual(errors, []);
    await close();
  } finally {
    server.stop();
  }
}
