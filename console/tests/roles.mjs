/** A token is asked for where it is needed, login addresses log in, files come by tickets, and viewers see no buttons that need an operator. */

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { mock, open, violations } from './harness.mjs';

export const name = 'roles';

export async function test(chrome) {
  const server = await mock('--auth', '--viewer');
  try {
    await looks(chrome, server.address);
    await enters(chrome, server.address);
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

async function enters(chrome, address) {
  const { page, errors, close } = await open(chrome, `${address}/login/confirm?code=demo`);
  const question = page.getByRole('alertdialog', { name: 'Log in as anna at this controller?' });
  await question.waitFor();
  assert.equal(page.url(), `${address}/`, 'the code has left the address bar');
  assert.deepEqual(await violations(page), []);
  await page.reload();
  await page.getByLabel('Token').waitFor();
  await page.goto(`${address}/login?code=demo`);
  await page.getByText('anna · viewer').waitFor();

  await page.goto(`${address}/runs/999`);
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'CSV', exact: true }).click();
  assert.equal(await readFile(await (await download).path(), 'utf8'), 'the report as csv');
  const [report] = await Promise.all([
    page.waitForEvent('popup'),
    page.getByRole('button', { name: 'HTML report' }).click(),
  ]);
  await report.getByText('the report as html').waitFor();
  await report.close();
  await page.goto(`${address}/evaluations/23`);
  await page.frameLocator('iframe').getByText('memory is better than disk.').waitFor();
  await page.reload();
  await page.frameLocator('iframe').getByText('memory is better than disk.').waitFor();
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByLabel('Token').waitFor();
  assert.deepEqual(
    errors.filter((error) => !error.includes('401')),
    [],
  );
  await close();
}
