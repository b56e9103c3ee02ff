/** A controller that is gone is noticed, and what comes after is followed again without a reload. */

import assert from 'node:assert/strict';
import { mock, open } from './harness.mjs';

export const name = 'stream';

export async function test(chrome) {
  let server = await mock();
  try {
    const { page, close } = await open(chrome, `${server.address}/w/101`);
    const second = page.getByText(/since the work started/);
    await second.waitFor();
    server.stop();
    await page.getByText(/No updates for/).waitFor({ timeout: 15_000 });
    const was = await second.textContent();
    server = await mock('--port', new URL(server.address).port);
    await page.getByText(/No updates for/).waitFor({ state: 'detached', timeout: 20_000 });
    await page.waitForFunction((was) => !document.body.textContent?.includes(was), was, { timeout: 15_000 });
    assert.equal(await page.getByRole('alert').count(), 0);
    await close();
  } finally {
    server.stop();
  }
}
