/** A controller with ten thousand runs: `node tests/many.mjs LOGIN`. Pages list a hundred of them; how soon is printed. */

import assert from 'node:assert/strict';
import { browser, logIn, open } from './harness.mjs';

const login = process.argv[2];
const address = new URL(login).origin;

/** Milliseconds until a link to a run is there, by the page's own clock. */
const there = () =>
  new Promise((resolve) => {
    const look = () =>
      document.querySelector('.data tbody td a') ? resolve(performance.now()) : requestAnimationFrame(look);
    look();
  });

const chrome = await browser();
const session = await logIn(chrome, login);
for (const path of ['/runs', '/runs?sort=throughput&page=50', '/runs?text=nightly-99', '/runs?valid=true&sort=p99']) {
  const times = [];
  for (let turn = 0; turn < 3; turn++) {
    const { page, errors, close } = await open(chrome, 'about:blank', { session });
    await page.goto(address + path);
    times.push(Math.round(await page.evaluate(there)));
    assert.deepEqual(errors, []);
    await close();
  }
  console.log(`  ${path}: there after ${times.join(', ')} ms`);
}
const { page, close } = await open(chrome, `${address}/runs`, { session });
await page.getByText('1 to 100 of 10\u202f000').waitFor();
assert.ok((await page.locator('.data tbody tr').count()) < 120, 'a page of them, not all');
await close();
await chrome.close();
