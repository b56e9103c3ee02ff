/** Two groups are compared by operation, over time and by percentile, within a margin; or it is said that they cannot be. */

import assert from 'node:assert/strict';
import { open } from './harness.mjs';

export const name = 'compare';

export async function test(chrome, address) {
  const { page, errors, close } = await open(chrome, `${address}/compare?a=991,992&b=995,996`);
  const changes = page.getByRole('region', { name: 'Changes of each operation' });
  await changes.getByRole('rowheader', { name: /^delete/ }).waitFor();
  assert.match(await changes.locator('tr', { hasText: 'read' }).first().textContent(), /[+−±][\d.]+ %/);
  await changes.getByText('differs: 16 → 8 workers').first().waitFor();
  const legends = page.locator('.chart .legend');
  assert.match(await legends.nth(0).textContent(), /A: run 991 .*A: run 992 .*B: run 995 .*B: run 996/);
  assert.match(await legends.nth(1).textContent(), /A: 2 runs .*B: 2 runs/);
  await page.getByRole('button', { name: 'Response time by percentile as a table' }).click();
  for (const percentile of ['p50', 'p99.9', 'max']) {
    await page.getByRole('rowheader', { name: percentile, exact: true }).waitFor();
  }
  await page.getByRole('combobox', { name: 'Operation' }).selectOption({ label: 'list' });

  await page.getByLabel('Margin').fill('50 percent');
  assert.ok(await page.getByRole('button', { name: 'Compare', exact: true }).isDisabled());
  await page.getByLabel('Margin').fill('50 %');
  await page.getByRole('button', { name: 'Compare', exact: true }).click();
  await page.waitForURL(/margin=50%25/);
  await page.getByText('margin: 50 %').waitFor();
  await page.getByText('equal within the margin').first().waitFor();

  await page.goto(`${address}/compare?a=989&b=995`);
  await page.getByText('Nothing comparable: A measured randread').waitFor();
  assert.equal(await page.getByRole('region', { name: 'Metrics of both groups' }).count(), 0, 'no numbers are made up');
  assert.deepEqual(errors, []);
  await close();
}
