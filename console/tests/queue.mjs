/** What waits is put into another order by the keyboard and by buttons, and cancelled; what runs is cancelled after a question. */

import assert from 'node:assert/strict';
import { open } from './harness.mjs';

export const name = 'queue';

export async function test(chrome, address) {
  const { page, errors, close } = await open(chrome, address);
  const rows = page.locator('.queue > li');
  const order = () => rows.locator('.what > a').allTextContents();
  await rows.first().waitFor();

  const before = await order();
  await rows.nth(4).focus();
  await page.keyboard.press('Alt+ArrowUp');
  await page.waitForFunction(
    (name) => document.querySelectorAll('.queue .what > a')[3]?.textContent === name,
    before[4],
  );
  const focused = await page.evaluate(() => document.activeElement?.querySelector('a')?.textContent);
  assert.equal(focused, before[4], 'the row that was moved keeps the focus');
  await page.getByRole('button', { name: `Move ${before[4]} down`, exact: true }).click();
  await page.waitForFunction(
    (name) => document.querySelectorAll('.queue .what > a')[4]?.textContent === name,
    before[4],
  );
  assert.deepEqual(await order(), before, 'there and back is where it was');

  await page.getByRole('button', { name: `Cancel ${before[0]}`, exact: true }).click();
  await page.keyboard.press('Escape');
  assert.equal((await order())[0], before[0], 'Escape cancels nothing');
  await page.getByRole('button', { name: `Cancel ${before[0]}`, exact: true }).click();
  await page.getByRole('button', { name: 'Cancel submission' }).click();
  await page.waitForFunction((name) => document.querySelector('.queue .what > a')?.textContent !== name, before[0]);

  await page.goto(`${address}/w/103`);
  await page.getByRole('button', { name: 'Cancel…' }).click();
  await page.getByRole('button', { name: 'Finish and clean up' }).click();
  await page.locator('.page-head').getByText('cancelled').waitFor();
  await page.getByRole('region', { name: 'Result' }).getByText(/op\/s/).first().waitFor();
  assert.deepEqual(errors, []);
  await close();
}
