/** A token is asked for where it is needed, and viewers see no buttons that need an operator. */

import assert from 'node:assert/strict';
import { mock, open, violations } from './harness.mjs';

export const name = 'roles';

export async function test(chrome) {
  const server = await mock('--auth', '--viewer');
  try {
    await looks(chrome, server.address);
  } finally {
    server.stop();
  }
}

async function looks(chrome, address) {
  const { page, close } = await open(chrome, `${address}/w/101`);
  const token = page.getByLabel('Token');
  await token.fill('wrong');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').waitFor();
  assert.deepEqual(await violations(page), []);
  await token.fill('demo');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'ceph-rgw-70-30' }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Cancel…' }).count(), 0);
  assert.equal(await page.getByRole('link', { name: 'Audit' }).count(), 0);
  await page.getByRole('link', { name: 'Tidemark, lab-1: overview' }).click();
  await page.locator('.queue > li').first().waitFor();
  assert.equal(await page.getByRole('button', { name: /^Move|^Cancel/ }).count(), 0);
  await page.getByRole('button', { name: 'Log out' }).click();
  await token.waitFor();
  await close();
}
