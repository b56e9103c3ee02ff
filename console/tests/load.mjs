/**
 * All of the console: below 300 KB. The first load: below 100 KB compressed, in few requests. How long it takes is printed and not
 * judged: it depends on what else the machine does.
 */

import assert from 'node:assert/strict';
import { readdirSync, statSync } from 'node:fs';
import { open } from './harness.mjs';

export const name = 'load';

/** Milliseconds until the overview's queue can be used, by the page's own clock. */
const there = () =>
  new Promise((resolve) => {
    const look = () =>
      document.querySelector('.queue button') ? resolve(performance.now()) : requestAnimationFrame(look);
    look();
  });

export async function test(chrome, address) {
  const assets = new URL('../dist/assets/', import.meta.url);
  const all = readdirSync(assets).reduce((sum, name) => sum + statSync(new URL(name, assets)).size, 0);
  assert.ok(all > 0 && all < 300_000, `the console has ${all} bytes`);
  const times = [];
  let size = 0;
  let requests = 0;
  for (let turn = 0; turn < 3; turn++) {
    const { page, close } = await open(chrome, 'about:blank');
    const session = await page.context().newCDPSession(page);
    await session.send('Network.enable');
    size = 0;
    const own = new Set();
    session.on(
      'Network.responseReceived',
      ({ requestId, response }) => !response.url.includes('/api/') && own.add(requestId),
    );
    session.on(
      'Network.loadingFinished',
      ({ requestId, encodedDataLength }) => own.has(requestId) && (size += encodedDataLength),
    );
    await page.goto(address);
    times.push(Math.round(await page.evaluate(there)));
    requests = own.size;
    await close();
  }
  console.log(
    `  ${(all / 1000).toFixed(1)} KB in all, first load ${(size / 1000).toFixed(1)} KB compressed in ${requests} requests, usable after ${times.join(', ')} ms`,
  );
  assert.ok(size > 0 && size < 100_000, `the first load has ${size} bytes`);
  assert.ok(requests > 0 && requests <= 10, `the first load has ${requests} requests`);
}
