/**
 * The console against a real controller with a driver: `node tests/real.mjs LOGIN ENDPOINT ACCESS SECRET [SHOTS]`. A COSBench file is uploaded and watched
 * live, its stages looked at, and the matrix; two runs are compared, a third is cancelled.
 */

import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { browser, open, violations } from './harness.mjs';

const [login, endpoint, access, secret, shots] = process.argv.slice(2);
const address = new URL(login).origin;

const workload = (name, seconds) => `<?xml version="1.0"?>
<workload name="${name}">
  <storage type="s3" config="accesskey=${access};secretkey=${secret};endpoint=${endpoint};path_style_access=true"/>
  <workflow>
    <workstage name="init"><work type="init" workers="1" config="cprefix=console;containers=r(1,2)"/></workstage>
    <workstage name="prepare"><work type="prepare" workers="2" config="cprefix=console;containers=r(1,2);objects=r(1,20);sizes=c(4)KB"/></workstage>
    <workstage name="main"><work name="main" workers="4" runtime="${seconds}">
      <operation type="read" ratio="70" config="cprefix=console;containers=u(1,2);objects=u(1,10)"/>
      <operation type="write" ratio="30" config="cprefix=console;containers=u(1,2);objects=u(11,20);sizes=c(4)KB"/>
    </work></workstage>
    <workstage name="cleanup"><work type="cleanup" workers="2" config="cprefix=console;containers=r(1,2);objects=r(1,20)"/></workstage>
    <workstage name="dispose"><work type="dispose" workers="1" config="cprefix=console;containers=r(1,2)"/></workstage>
  </workflow>
</workload>
`;

const chrome = await browser();
const { page, errors, close } = await open(chrome, login);
page.setDefaultTimeout(90_000);

/** A picture of what is there, in both themes and widths, if somebody wants to look. */
async function look(name) {
  if (!shots) return;
  mkdirSync(shots, { recursive: true });
  for (const scheme of ['light', 'dark']) {
    for (const width of [1440, 360]) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.setViewportSize({ width, height: 900 });
      await page.waitForTimeout(400);
      await page.screenshot({ path: join(shots, `${name}-${scheme}-${width}.png`), fullPage: true });
    }
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1440, height: 900 });
}

/** Uploads a document and submits it; gives the submission's address. */
async function submit(name, seconds) {
  await page.goto(`${address}/submit`);
  const file = { name: 'w.xml', mimeType: 'text/xml', buffer: Buffer.from(workload(name, seconds)) };
  await page.locator('input[type=file]').setInputFiles(file);
  await page.locator('.badge', { hasText: 'COSBench XML: ready to run' }).waitFor();
  if (name === 'first') await look('submit');
  await page.getByRole('button', { name: 'Submit', exact: true }).click();
  await page.waitForURL(/\/w\/\d+$/);
  await page.getByRole('heading', { name }).waitFor();
}

/** Follows the submission on this page to its run's page; gives the run's number. */
async function toRun() {
  const link = page.getByRole('link', { name: /^Run \d+: verdict/ });
  await link.waitFor();
  await link.click();
  await page.waitForURL(/\/runs\/\d+$/);
  await page.locator('.page-head').getByText('completed').waitFor();
  return Number(page.url().split('/').at(-1));
}

await page.getByRole('heading', { name: 'Overview' }).waitFor();
await submit('first', 8);
// Live: seconds of the main stage, with numbers that are there and move.
const second = page.getByText(/since the work started/);
await page.waitForFunction(() => /at 0:0[4-8] since the work started/.test(document.body.textContent));
assert.match(await second.textContent(), /since the work started/);
assert.ok((await page.locator('.chart canvas').count()) >= 3, 'live charts are drawn');
await look('live');
await page.goto(`${address}/`);
await page.getByRole('heading', { name: 'Running' }).waitFor();
await look('overview');
await page.goBack();
const first = await toRun();

// The run's page: stages, operations with their percentiles, the report's own figures.
await page.getByText(/Other stages/).click();
for (const stage of ['init', 'prepare', 'main', 'cleanup', 'dispose']) {
  await page
    .getByText(new RegExp(`s\\d-${stage}`))
    .first()
    .waitFor();
}
const operations = page.getByRole('region', { name: /Operations of s3-main/ }).first();
await operations.getByText('read', { exact: true }).first().waitFor();
await operations.getByText('write', { exact: true }).first().waitFor();
await page.locator('figure img, figure svg').first().waitFor();
await look('run');
assert.deepEqual(await violations(page), []);

await submit('second', 3);
const other = await toRun();
await page.goto(`${address}/matrix`);
const matrix = page.getByRole('region', { name: 'Performance matrix' });
await matrix.getByText('first').first().waitFor();
await matrix.getByText('second').first().waitFor();
await look('matrix');

await page.goto(`${address}/compare?a=${first}&b=${other}`);
await page.getByRole('region', { name: 'Metrics of both groups' }).waitFor();
await page
  .getByText(/too few repeats/)
  .first()
  .waitFor();
await look('compare');

await submit('third', 120);
await page.waitForFunction(() => /at 0:0[2-9] since the work started/.test(document.body.textContent));
await page.getByRole('button', { name: 'Cancel…' }).click();
await page.getByRole('button', { name: 'Finish and clean up' }).click();
await page.locator('.page-head').getByText('cancelled').waitFor();
await look('cancelled');
await page.goto(`${address}/runs`);
await page.getByText('third').first().waitFor();
await look('runs');

assert.deepEqual(errors, []);
await close();
await chrome.close();
console.log('the console did all of it');
