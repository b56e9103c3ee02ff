/**
 * What the form writes for an S3 service runs on a real controller with a driver, with keys that are entered there and shown
 * nowhere: `node tests/real-form.mjs LOGIN ENDPOINT ACCESS SECRET [SHOTS]`.
 */

import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { browser, open } from './harness.mjs';

const [login, endpoint, access, secret, shots] = process.argv.slice(2);
const address = new URL(login).origin;
const chrome = await browser();
const { page, errors, close } = await open(chrome, login);
page.setDefaultTimeout(90_000);
await page.getByRole('heading', { name: 'Overview' }).waitFor();
await page.goto(`${address}/submit?form`);

await page.getByLabel('Name', { exact: true }).fill('by-form');
await page.getByLabel('Kind of target').selectOption('s3');
const document = page.getByRole('textbox', { name: 'Document' });
const ready = page.locator('.badge', { hasText: 'Tidemark YAML: ready to run' });
await ready.waitFor();
for (const [label, value] of [
  ['Endpoint', endpoint],
  ['Access key', access],
  ['Secret key', secret],
  ['Containers', '1'],
  ['Objects per container', '10'],
  ['Object size', '4KiB'],
  ['Workers', '2'],
  ['Measured seconds', '2'],
  ['Warm-up seconds', '0'],
]) {
  await page.getByLabel(label, { exact: true }).fill(value);
}
assert.ok(!(await document.inputValue()).includes(secret), 'the key is not shown');
await page.locator('.panel.pending').waitFor({ state: 'detached' });
await ready.waitFor();
if (shots) {
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: join(shots, 'by-form.png'), fullPage: true });
}
await page.getByRole('button', { name: 'Submit', exact: true }).click();
await page.waitForURL(/\/w\/\d+$/);
const id = page.url().split('/').at(-1);
const authorization = `Bearer ${await page.evaluate(() => localStorage.getItem('tidemark.session'))}`;
const get = (path) => page.request.get(`${address}/api/v1${path}`, { headers: { authorization } });
const asked = (path) => get(`/submissions/${id}${path}`);
const stored = await (await asked('/document')).text();
assert.match(stored, /name: by-form/);
assert.ok(!stored.includes(secret), 'the key is not shown afterwards');
let submission;
do {
  await page.waitForTimeout(500);
  submission = await (await asked('')).json();
} while (submission.state === 'queued' || submission.state === 'running');
assert.equal(submission.state, 'completed', submission.reason);
const run = await (await get(`/runs/${submission.run}`)).json();
const operations = run.stages.flatMap(({ works }) => works.flatMap(({ operations }) => operations));
assert.ok(
  operations.every(({ ok, failed }) => ok > 0 && failed === 0),
  JSON.stringify(operations.map(({ ok, failed }) => [ok, failed])),
);
assert.deepEqual(errors, []);
await close();
await chrome.close();
