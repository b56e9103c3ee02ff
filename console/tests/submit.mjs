/** A document is checked while it is typed, uploaded, written by the form, and submitted. */

import assert from 'node:assert/strict';
import { open, violations } from './harness.mjs';

export const name = 'submit';

const cosbench = `<?xml version="1.0"?>
<workload name="from-cosbench"><workflow><workstage name="init"/><workstage name="main"/></workflow></workload>
`;

export async function test(chrome, address) {
  const { page, errors, close } = await open(chrome, `${address}/submit`);
  const document = page.getByRole('textbox', { name: 'Document' });
  const submit = page.getByRole('button', { name: 'Submit', exact: true });

  await document.fill('name: x\ntarget: embedded\nstages:\n  - load:\n      fro: 6s\n');
  const problem = page.getByRole('button', { name: /Error, line 5/ });
  await problem.waitFor();
  assert.ok(await submit.isDisabled(), 'a wrong document cannot be submitted');
  await problem.click();
  const chosen = await document.evaluate((area) => area.value.slice(area.selectionStart, area.selectionEnd));
  assert.equal(chosen, 'fro', 'a click on a problem goes to its place');

  await page.getByRole('button', { name: 'Use a form' }).click();
  await page.getByLabel('Delete', { exact: true }).fill('5');
  const kind = page.getByLabel('Kind of target');
  await kind.selectOption('s3');
  const written = await document.inputValue();
  assert.match(written, /- delete: \{weight: 5\}/);
  assert.match(written, /secret_key: \$\{TIDEMARK_SECRET_KEY\}/);
  await page.getByLabel('Secret key', { exact: true }).fill('hunter2');
  await page.getByText('never the key itself').waitFor();
  assert.ok(await submit.isDisabled(), 'a bare secret cannot be submitted');
  await page.getByText('More settings').focus();
  await page.keyboard.press('Enter');
  await page.getByLabel('Path style').selectOption('false');
  assert.match(await document.inputValue(), /path_style: false/);

  await kind.selectOption('swift');
  await page.getByLabel('Auth', { exact: true }).selectOption('keystone-v3');
  await page.getByLabel('Project', { exact: true }).fill('lab');
  assert.match(await document.inputValue(), /kind: keystone-v3\n[^]*project: lab\n/);
  await page.locator('.badge', { hasText: 'ready to run' }).waitFor();
  assert.deepEqual(await violations(page), [], 'the form of a target with mappings is accessible');
  await kind.selectOption('file');
  await page.getByLabel('Depth').fill('32');
  await page.getByRole('button', { name: 'Sequential offsets' }).click();
  assert.match(await document.inputValue(), /kind: file\n[^]*pattern: rw\n[^]*depth: 32\n/);

  await page.getByRole('button', { name: 'Upload or edit' }).click();
  await page
    .locator('input[type=file]')
    .setInputFiles({ name: 'w.xml', mimeType: 'text/xml', buffer: Buffer.from(cosbench) });
  await page.locator('.badge', { hasText: 'COSBench XML: ready to run' }).waitFor();
  await page.getByLabel('Priority').fill('7');
  await submit.click();
  await page.waitForURL(/\/w\/\d+$/);
  await page.getByRole('heading', { name: 'from-cosbench' }).waitFor();
  await page.locator('.notice', { hasText: 'Queued: ' }).waitFor();
  assert.deepEqual(errors, []);
  await close();
}
