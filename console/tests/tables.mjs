/** Thousands of rows stay few in the document; they are filtered, sorted, compared, and live numbers move. */

import assert from 'node:assert/strict';
import { open } from './harness.mjs';

export const name = 'tables';

export async function test(chrome, address) {
  const { page, errors, close } = await open(chrome, `${address}/matrix`);
  const rows = page.getByRole('region', { name: 'Performance matrix' }).locator('tbody tr');
  const shown = async () => {
    await page.waitForFunction(() =>
      /^[\d\u202f]+ rows?$/.test(document.querySelector('.filters [role=status]')?.textContent ?? ''),
    );
    return Number((await page.locator('.filters [role=status]').textContent()).replace(/\D/g, ''));
  };
  const all = await shown();
  assert.ok((await rows.count()) < 120, 'only rows in view are in the document');
  await page.getByLabel('Include preparation and cleanup').check();
  assert.equal(await shown(), all + 1000, 'each run was prepared once, by writes');
  await page.getByLabel('Include preparation and cleanup').uncheck();
  const legend = page.locator('.chart .legend > span');
  const colours = async () =>
    new Map(
      await legend.evaluateAll((spans) =>
        spans.map((span) => [span.firstChild.nextSibling.textContent.trim(), span.querySelector('circle').style.fill]),
      ),
    );
  const before = await colours();
  assert.equal(before.size, 6);
  await page.getByRole('combobox', { name: 'Operation' }).selectOption('write');
  assert.ok((await shown()) < all / 2);
  const after = await colours();
  const kept = [...after.keys()].filter((name) => before.has(name));
  assert.ok(kept.length > 0 && kept.every((name) => after.get(name) === before.get(name)), 'colours stay');
  const heads = await page.locator('.data thead th').allTextContents();
  assert.ok(
    ['Pattern', 'Size', 'Depth'].every((head) => heads.includes(head)),
    `${heads}`,
  );
  await page.getByRole('button', { name: 'Throughput', exact: true }).click();
  const place = 1 + heads.indexOf('Throughput');
  const column = () => rows.locator(`td:nth-child(${place})`).allTextContents();
  const numbers = (await column()).slice(0, 20).map((text) => Number(text.replace(/[^\d.]/g, '')));
  assert.deepEqual(
    numbers,
    numbers.slice().sort((a, b) => b - a),
    'the largest are first',
  );
  await page.getByRole('combobox', { name: 'Operation' }).selectOption('');
  await page.getByLabel('Run, stage or settings').fill('oltp-randread');
  await page.getByText('randread', { exact: true }).first().waitFor();

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
