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
  await page.getByText('1\u202f000 runs', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Run 1000 in group A' }).click();
  await page.getByRole('button', { name: 'Run 999 in group B' }).click();
  await page.getByRole('link', { name: 'Compare', exact: true }).last().click();
  await page.getByText('too few repeats').first().waitFor();

  await page.goto(`${address}/w/101`);
  const second = page.getByText(/since the work started/);
  await second.waitFor();
  const was = await second.textContent();
  await page.waitForFunction((was) => document.body.textContent && !document.body.textContent.includes(was), was);
  assert.deepEqual(errors, []);
  await close();
}
