/**
 * The console against a real controller with two drivers:
 *
 *     node tests/real.mjs LOGIN ENDPOINT ACCESS SECRET DRIVER-PROCESS [SHOTS]
 *
 * A COSBench file is dropped and followed to its result on one page, which is reloaded in the middle; a driver is frozen and comes
 * back; a run is cancelled, edited and submitted again; an evaluation's board fills in.
 */

import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { browser, open, violations } from './harness.mjs';

const [login, endpoint, access, secret, driver, shots] = process.argv.slice(2);
const address = new URL(login).origin;

const workload = (name, seconds) => `<?xml version="1.0"?>
<workload name="${name}">
  <storage type="s3" config="accesskey=${access};secretkey=${secret};endpoint=${endpoint};path_style_access=true"/>
  <workflow>
    <workstage name="init"><work type="init" workers="1" config="cprefix=console;containers=r(1,2)"/></workstage>
    <workstage name="prepare"><work type="prepare" workers="2" config="cprefix=console;containers=r(1,2);objects=r(1,20);sizes=c(4)KB"/></workstage>
    <workstage name="main"><work name="main" workers="4" runtime="${seconds}">
      <operation type="read" ratio="70" config="cprefix=console;containers=u(1,2);objects=u(1,10)"/>
      <operation type="write" ratio="30" config="cprefix=console;containers=u(1,2);objects=u(11,20);sizes=c(4)KB"/>
    </work></workstage>
    <workstage name="cleanup"><work type="cleanup" workers="2" config="cprefix=console;containers=r(1,2);objects=r(1,20)"/></workstage>
    <workstage name="dispose"><work type="dispose" workers="1" config="cprefix=console;containers=r(1,2)"/></workstage>
  </workflow>
</workload>
`;

const chrome = await browser();
const { page, errors, close } = await open(chrome, login);
page.setDefaultTimeout(90_000);

/** A picture of what is there, in both themes and widths, if somebody wants to look. */
async function look(name) {
  if (!shots) return;
  mkdirSync(shots, { recursive: true });
  for (const scheme of ['light', 'dark']) {
    for (const width of [1440, 390]) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.setViewportSize({ width, height: 900 });
      await page.waitForTimeout(400);
      await page.screenshot({ path: join(shots, `${name}-${scheme}-${width}.png`), fullPage: true });
    }
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1440, height: 900 });
}

/** Drops a document on the page and submits it; gives the submission's number. */
async function submit(name, text, format = 'COSBench XML') {
  await page.goto(`${address}/submit`);
  const dropped = await page.evaluateHandle((text) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([text], 'w.xml', { type: 'text/xml' }));
    return transfer;
  }, text);
  await page.locator('.drop').dispatchEvent('drop', { dataTransfer: dropped });
  await page.locator('.badge', { hasText: `${format}: ready to run` }).waitFor();
  await page.getByRole('button', { name: 'Submit', exact: true }).click();
  await page.waitForURL(/\/w\/\d+$/);
  await page.getByRole('heading', { name, level: 1 }).waitFor();
  return Number(page.url().split('/').at(-1));
}

/** Waits until the work that goes on has told this second. */
const second = (from) =>
  page.waitForFunction((from) => {
    const at = /at (\d+):(\d\d) since the work started/.exec(document.body.textContent);
    return at && Number(at[1]) * 60 + Number(at[2]) >= from;
  }, from);

/** Rows of the table of a chart: seconds that the page knows of the run. */
async function known() {
  const table = page.getByRole('button', { name: 'Throughput, op/s as a table' });
  await table.click();
  const rows = await page
    .getByRole('region', { name: 'Throughput, op/s, table' })
    .locator('tbody tr')
    .evaluateAll((rows) => rows.map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent)));
  await table.click();
  return rows.filter((cells) => cells.some((text) => /\d/.test(text))).length;
}

const tile = (name) => page.locator('.tiles > div', { has: page.locator('dt', { hasText: name }) });

await page.getByRole('heading', { name: 'Overview' }).waitFor();

// One page from the drop to the result, reloaded in the middle, a driver frozen on the way.
const first = await submit('first', workload('first', 30));
await second(4);
assert.ok((await page.locator('.chart canvas').count()) >= 3, 'live charts are drawn');
assert.equal((await tile('Drivers').locator('dd').textContent()).trim(), '2');
process.kill(Number(driver), 'SIGSTOP');
try {
  await tile('Drivers')
    .getByText(/^1 of 2/)
    .waitFor();
  await tile('Throughput').getByText('from 1 of 2 drivers').waitFor();
  await page.getByText(/Silent, and not in these numbers: d2/).waitFor();
  await page.getByRole('list', { name: 'What happened' }).getByText('d2 is silent').first().waitFor();
  await look('frozen');
} finally {
  process.kill(Number(driver), 'SIGCONT');
}
await page.getByRole('list', { name: 'What happened' }).getByText('d2 is back').first().waitFor();
const before = await known();
assert.ok(before >= 4, `${before} seconds`);
await page.reload();
await second(5);
const after = await known();
assert.ok(after >= before, `${after} seconds after the reload, ${before} before`);
await page.getByRole('list', { name: 'What happened' }).getByText('d2 is silent').first().waitFor();
await look('live');

// Zoomed by a drag, and back by the button.
const drawing = await page.locator('.charts .u-over').first().boundingBox();
await page.mouse.move(drawing.x + drawing.width * 0.3, drawing.y + 40);
await page.mouse.down();
await page.mouse.move(drawing.x + drawing.width * 0.7, drawing.y + 40, { steps: 5 });
await page.mouse.up();
await page.getByRole('button', { name: /^Show all of/ }).click();

const result = page.getByRole('region', { name: 'Result' });
await result.getByText(/op\/s/).first().waitFor();
assert.equal(page.url(), `${address}/w/${first}`, 'it is still the same page');
assert.ok((await page.locator('.charts.live canvas').count()) >= 3, 'the live charts stay');
assert.ok((await known()) >= after, 'with all their seconds');
await page.reload();
await result.getByText(/op\/s/).first().waitFor();
await page.locator('.charts.live canvas').first().waitFor();
assert.ok((await known()) >= after, 'also after a reload, although the last stage took no time');
await page.locator('figure svg, figure img').first().waitFor();
await look('result');
assert.deepEqual(await violations(page), []);

// The run's page, the page of a stage, and the files.
await result.getByRole('link', { name: /^Run \d+$/ }).click();
await page.waitForURL(/\/runs\/\d+$/);
const run = Number(page.url().split('/').at(-1));
await page.getByText(/Other stages/).click();
for (const stage of ['init', 'prepare', 'main', 'cleanup', 'dispose']) {
  await page
    .getByText(new RegExp(`s\\d-${stage}`))
    .first()
    .waitFor();
}
const operations = page.getByRole('region', { name: /Operations of s3-main/ }).first();
await operations.getByText('read', { exact: true }).first().waitFor();
await operations.getByText('write', { exact: true }).first().waitFor();
await look('run');
for (const name of ['COSBench archive', 'Configuration', 'Log']) {
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name, exact: true }).click();
  assert.match((await download).suggestedFilename(), new RegExp(`^tidemark-run-${run}`), name);
}
const [report] = await Promise.all([
  page.waitForEvent('popup'),
  page.getByRole('button', { name: 'HTML report' }).click(),
]);
await report.getByRole('heading', { level: 1, name: 'first' }).waitFor();
assert.equal(await report.evaluate(() => origin), 'null', 'a report reaches nothing that the console keeps');
await report.close();
await page.getByRole('button', { name: 'Add a note or tags' }).click();
await page.getByLabel('Tags, with commas between').fill('nightly');
await page.getByRole('button', { name: 'Save' }).click();
await page.getByRole('link', { name: 'nightly' }).waitFor();
await page.getByRole('link', { name: 'Page of this stage' }).first().click();
await page.getByRole('heading', { name: 'main', level: 1 }).waitFor();
await page.locator('figure svg, figure img').first().waitFor();

// Cancelled, edited, submitted again.
await submit('second', workload('second', 120));
await second(2);
await page.getByRole('button', { name: 'Cancel…' }).click();
await page.getByRole('button', { name: 'Finish and clean up' }).click();
await page
  .getByRole('list', { name: 'What happened' })
  .getByText(/^[\d: ]*cancelled/)
  .waitFor();
await page.locator('.page-head').getByText('cancelled').waitFor();
await look('cancelled');
await page.getByRole('link', { name: 'Edit and submit again' }).first().click();
const editor = page.getByRole('textbox', { name: 'Document' });
await editor.waitFor();
const shown = await editor.inputValue();
assert.ok(!shown.includes(secret) && shown.includes('***'), 'the secret is hidden');
await editor.fill(shown.replace('runtime="120"', 'runtime="3"').replace('name="second"', 'name="third"'));
const changes = page.getByLabel('Changes');
await changes.getByText(/^- .*runtime="120"/).waitFor();
await changes.getByText(/^\+ .*runtime="3"/).waitFor();
const again = page.getByRole('button', { name: 'Submit the changed document' });
// Who has no name is nobody's owner: the secret is to be written again.
const refused = page.getByRole('listitem').filter({ hasText: 'write it again' });
await Promise.race([refused.waitFor(), again.and(page.locator(':enabled')).waitFor()]);
if (await refused.isVisible()) await editor.fill((await editor.inputValue()).replace('***', secret));
await look('edit');
await again.click();
await page.getByRole('heading', { name: 'third', level: 1 }).waitFor();
await result.getByText(/op\/s/).first().waitFor();

// An evaluation fills in while it is watched, and ends in its report.
const board = (workers) => `name: levels
arms:
  - {name: one, target: {kind: mock, delay: 2ms}}
  - {name: two, target: {kind: mock, delay: 1ms}}
loads:
  - name: reads
    levels: {workers: [${workers}]}
    stages:
      - load: {for: 2s, containers: 1, operations: [{get: {objects: 1-100}}]}
repeats: 2
`;
await submit('levels', board('1, 2'), 'Tidemark evaluation');
const cells = page.getByRole('region', { name: 'Cells of reads' });
await page.getByText(/^Now: /).waitFor();
await page.getByText(/1 of 8 runs done/).waitFor();
await cells.getByText(/op\/s/).first().waitFor();
await page.reload();
await cells.getByText(/± /).first().waitFor();
await look('board');
await page.locator('.page-head').getByText('completed').waitFor();
await page
  .getByRole('link', { name: /^Evaluation \d+$/ })
  .first()
  .waitFor();
assert.equal(await cells.getByText(/± /).count(), 4, 'every cell has an interval');
assert.deepEqual(await violations(page), []);

await page.goto(`${address}/runs?text=levels`);
await page
  .getByText(/two · reads, workers 2 · #2/)
  .first()
  .waitFor();
await page.goto(`${address}/runs`);
await look('runs');
await page.getByText('third').first().waitFor();
await page.getByRole('checkbox', { name: `Select run ${run}`, exact: true }).check();
await page.getByRole('checkbox').nth(1).check();
await page.getByRole('link', { name: /^Compare \d+ with \d+$/ }).click();
await page.waitForURL(/compare/);

assert.deepEqual(errors, []);
await close();
await chrome.close();
console.log('the console did all of it');
