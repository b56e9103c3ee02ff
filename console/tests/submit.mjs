/** A document is checked while it is typed, uploaded, written by the form, and submitted. */

import assert from 'node:assert/strict';
import { drop, open, violations } from './harness.mjs';

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
  const ready = page.locator('.badge', { hasText: 'ready to run' });
  const kind = page.getByLabel('Kind of target');
  await kind.selectOption('s3');
  const written = await document.inputValue();
  assert.match(written, /- delete: \{weight: 5\}/);
  assert.doesNotMatch(written, /TIDEMARK_SECRET/, 'no variable is named that the controller may not have');
  await ready.waitFor();
  await page.getByLabel('Access key', { exact: true }).fill('${TIDEMARK_SECRET_ACCESS_KEY}');
  const secret = page.getByLabel('Secret key', { exact: true });
  await secret.fill('hunter2');
  assert.equal(await secret.getAttribute('type'), 'password', 'a key is not shown while it is typed');
  assert.match(await document.inputValue(), /access_key: \$\{TIDEMARK_SECRET_ACCESS_KEY\}\n {2}secret_key: •+\n/);
  const checked = page.waitForRequest((request) => request.url().endsWith('/check'));
  await page.locator('.form').getByText('More settings').focus();
  await page.keyboard.press('Enter');
  await page.getByLabel('Path style').selectOption('false');
  assert.match((await checked).postDataJSON().document, /secret_key: "hunter2"\n/, 'the controller gets the key');
  assert.match(await document.inputValue(), /path_style: false/);
  await ready.waitFor();
  assert.ok(await submit.isEnabled(), 'what the form writes for S3 can be submitted');

  await page.getByRole('button', { name: 'Add a load after it' }).click();
  await page.getByLabel('Load name').nth(1).fill('reads');
  await page.getByLabel('Write', { exact: true }).nth(1).fill('0');
  assert.match(await document.inputValue(), /- name: main\n[^]*- name: reads\n/);
  await page.getByRole('button', { name: 'Sweep of sizes and workers' }).click();
  await page.getByText('3 sizes × 4 levels × 3 repeats = 36 runs').waitFor();
  assert.match(await document.inputValue(), /loads:\n {2}- name: 4KiB\n[^]*levels: \{workers: \[8, 16, 32, 64\]\}\n/);
  assert.deepEqual(await violations(page), [], 'the form of a sweep is accessible');
  await page.getByRole('button', { name: 'One load' }).click();

  await kind.selectOption('swift');
  await page.getByLabel('Auth', { exact: true }).selectOption('keystone-v3');
  await page.getByLabel('Project', { exact: true }).fill('lab');
  assert.match(await document.inputValue(), /kind: keystone-v3\n[^]*project: lab\n/);
  await ready.waitFor();
  assert.deepEqual(await violations(page), [], 'the form of a target with mappings is accessible');
  await kind.selectOption('file');
  await page.getByLabel('Depth', { exact: true }).fill('1, 32');
  await page.getByRole('button', { name: 'randrw', exact: true }).click();
  assert.match(await document.inputValue(), /kind: file\n[^]*pattern: \[randread, randrw\]\n[^]*depth: \[1, 32\]\n/);
  assert.deepEqual(await violations(page), [], 'the form of volumes is accessible');
  await kind.selectOption('device');
  assert.equal(await page.getByLabel('Remove files and images').count(), 0, 'a device cannot be removed');
  assert.doesNotMatch(await document.inputValue(), /cleanup/);

  await page.getByRole('button', { name: 'Upload or edit' }).click();
  await document.fill('');
  await page.getByText('Drop a file here').waitFor();
  await drop(page, 'main .drop', 'w.xml', cosbench);
  await page.locator('.badge', { hasText: 'COSBench XML: ready to run' }).waitFor();
  const general = page.getByText('5 differences are those of every COSBench file');
  assert.ok(!(await general.isVisible()), 'what holds for every such file is folded');
  await page.getByText('1 remark on every document').click();
  await general.waitFor();
  await page.getByLabel('Priority').fill('7');
  await submit.click();
  await page.waitForURL(/\/w\/\d+$/);
  await page.getByRole('heading', { name: 'from-cosbench' }).waitFor();
  await page.locator('.notice', { hasText: 'Queued: ' }).waitFor();
  assert.deepEqual(errors, []);
  await close();
}
