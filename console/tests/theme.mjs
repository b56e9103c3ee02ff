/** Light and dark follow the system until the user chooses, and the choice is kept. */

import assert from 'node:assert/strict';
import { open } from './harness.mjs';

export const name = 'theme';

export async function test(chrome, address) {
  const { page, close } = await open(chrome, address, { dark: true });
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const turn = page.getByRole('button', { name: /^Colours/ });
  await turn.waitFor();
  assert.equal(await paper(), 'rgb(20, 23, 27)');
  await turn.click();
  assert.equal(await paper(), 'rgb(255, 255, 255)');
  await page.reload();
  await turn.waitFor();
  assert.equal(await paper(), 'rgb(255, 255, 255)');
  await page.keyboard.press('Tab');
  const skip = await page.evaluate(() => document.activeElement?.textContent?.trim());
  assert.equal(skip, 'Skip to content');
  await close();
}
