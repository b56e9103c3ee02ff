/** Thousands of rows stay few in the document; they are filtered, sorted, compared, and live numbers move. */

import assert from 'node:assert/strict';
import { open } from './harness.mjs';

export const name = 'tables';

export async function test(chrome, address) {
  const { page, errors, close } = await open(chrome, `${address}/matrix`);
  await page.getByText('4\u202f000 rows', { exact: true }).waitFor();
  const rows = page.getByRole('region', { name: 'Performance matrix' }).locator('tbody tr');
  assert.ok((await rows.count()) < 120, 'only rows in view are in the document');
  await page.getByRole('combobox', { name: 'Operation' }).selectOption('write');
  await page.getByText('1\u202f000 rows', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Throughput', exact: true }).click();
  const column = () =>
    page.getByRole('region', { name: 'Performance matrix' }).locator('tbody td:nth-child(8)').allTextContents();
  const numbers = (await column()).slice(0, 20).map((text) => Number(text.replace(/[^\d.]/g, '')));
  assert.deepEqual(
    numbers,
    numbers.slice().sort((a, b) => b - a),
    'the largest are first',
  );

  await page.goto(`${address}/runs`);
  const status = (runs) => page.getByRole('status').getByText(runs, { exact: true });
  await status('1\u202f001 runs').waitFor();
  await page.getByText('connection refused').first().waitFor();
  // The controller sorts: the first row of all, not of the page.
  await page.getByRole('button', { name: 'Throughput', exact: true }).click();
  await page.waitForURL(/sort=throughput/);
  const first = page.getByRole('region', { name: 'Runs' }).locator('tbody tr').first();
  await page.getByRole('button', { name: 'Next' }).click();
  await page.waitForURL(/page=2/);
  await page.getByText('101 to 200 of 1\u202f001').waitFor();
  await page.reload();
  await page.getByText('101 to 200 of 1\u202f001').waitFor();
  await page.goto(`${address}/runs`);
  await page.getByRole('combobox', { name: 'Tag' }).selectOption('nightly');
  await page.waitForURL(/tag=nightly/);
  await status('2 runs').waitFor();
  await page.getByRole('searchbox').fill('upgrade');
  await status('1 run').waitFor();
  assert.match(page.url(), /text=upgrade/);
  assert.match(await first.textContent(), /op\/s/);

  await page.goto(`${address}/runs`);
  await page.getByRole('checkbox', { name: 'Select run 1000' }).check();
  await page.getByRole('checkbox', { name: 'Select run 999' }).check();
  await page.getByLabel('Tag for the selected runs').fill('pair');
  await page.getByRole('button', { name: 'Add tag' }).click();
  await page.getByRole('link', { name: 'pair', exact: true }).first().waitFor();
  await page.getByRole('checkbox', { name: 'Select run 1000' }).check();
  await page.getByRole('checkbox', { name: 'Select run 999' }).check();
  await page.getByRole('link', { name: 'Compare 999 with 1000' }).click();
  await page.getByText('too few repeats').first().waitFor();

  await page.goto(`${address}/w/101`);
  const second = page.getByText(/since the work started/);
  await second.waitFor();
  const was = await second.textContent();
  await page.waitForFunction((was) => document.body.textContent && !document.body.textContent.includes(was), was);
  assert.deepEqual(errors, []);
  await close();
}
