/**
 * A browser that is logged in at a controller visits the page of another user of this host, on another port:
 *
 *     node tests/neighbour.mjs LOGIN OPERATOR-TOKEN VIEWER-TOKEN [SHOTS]
 *
 * That server gets no credential, its page reads and changes nothing, and its links log nobody in who was not asked.
 */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { browser, violations } from './harness.mjs';

const [login, operator, viewer, shots] = process.argv.slice(2);
const address = new URL(login).origin;

/** Starts the other server, as a user of its own where that is possible. */
async function start() {
  const script = readFileSync(new URL('stranger.mjs', import.meta.url), 'utf8');
  const nobody = process.getuid() === 0 ? { uid: 65534, gid: 65534 } : {};
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
    cwd: '/',
    env: {},
    ...nobody,
  });
  const lines = createInterface({ input: child.stdout });
  const port = await new Promise((resolve, reject) => {
    lines.once('line', resolve);
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`the other server ended with ${code}`)));
  });
  const requests = [];
  lines.on('line', (line) => requests.push(JSON.parse(line)));
  return { address: `http://127.0.0.1:${port}`, requests, stop: () => child.kill() };
}

/** Asks the controller, as somebody who has a token. */
async function ask(path, token = operator, method = 'GET') {
  const answer = await fetch(address + path, { method, headers: { authorization: `Bearer ${token}` } });
  assert.equal(answer.status, 200, `${method} ${path}`);
  return answer.json();
}

/** A login address of whoever has this token. */
const invite = async (token) => `${address}/login?code=${await ask('/login', token, 'POST')}`;

const chrome = await browser();
const context = await chrome.newContext({ reducedMotion: 'reduce' });
const page = await context.newPage();
const stranger = await start();

async function look(name) {
  if (!shots) return;
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
}
const key = () => page.evaluate(() => localStorage.getItem('tidemark.session'));
const isLoggedInAs = (user) => page.locator('.user-name', { hasText: `${user} · ` }).waitFor();
const question = (user) => page.getByRole('alertdialog', { name: `Log in as ${user} at this controller?` });
/** Follows a link on the other server's page. */
async function follow(to) {
  await page.goto(`${stranger.address}/link?to=${encodeURIComponent(to)}`);
  await page.getByRole('link', { name: 'Follow me' }).click();
}

try {
  await page.goto(login);
  const own = (await page.locator('.user-name').textContent()).split(' · ')[0];
  assert.equal(page.url(), `${address}/`, 'the code has left the address bar');
  const session = await key();
  assert.match(session, /^session-[0-9a-f]{64}$/);
  assert.deepEqual(await context.cookies(), [], 'there is no cookie');

  // The page of the other user tries, twice: the second time the browser has the cookies that it set.
  const other = await context.newPage();
  for (const _ of [1, 2]) {
    await other.goto(`${stranger.address}/attack?target=${encodeURIComponent(address)}`);
    await other.waitForFunction(() => document.title === 'done');
  }
  await other.close();
  assert.equal(stranger.requests[0].headers.cookie, undefined, 'the browser sends it nothing of its own accord');
  for (const request of stranger.requests) {
    assert.equal(request.headers.authorization, undefined, request.url);
    assert.ok(!JSON.stringify(request).includes(session.slice(-64)), request.url);
  }
  const reports = stranger.requests.filter(({ url }) => url === '/done').map(({ body }) => JSON.parse(body));
  assert.equal(reports.length, 2);
  for (const outcomes of reports) {
    assert.ok(Object.keys(outcomes).length > 20, JSON.stringify(outcomes));
    for (const [tried, outcome] of Object.entries(outcomes)) assert.match(outcome, /^failed: /, tried);
  }

  // Nothing was done at the controller, and nobody was logged out or in.
  assert.deepEqual(await ask('/api/v1/submissions'), []);
  // The controller's own driver joins when it likes.
  const usual = /^(login|refused|driver joined)$/;
  const changed = (await ask('/api/v1/audit')).filter(({ what }) => !usual.test(what));
  assert.deepEqual(changed, []);
  await page.reload();
  await isLoggedInAs(own);
  assert.equal(await key(), session);

  // A link of the other page to somebody else's login address asks, and does nothing until it is answered.
  const vera = await invite(viewer);
  await follow(vera);
  await question('vera').waitFor();
  assert.deepEqual(await violations(page), []);
  await look('question-replaces');
  assert.equal(page.url(), `${address}/`, 'the code has left the address bar');
  assert.equal(await key(), session);
  await page.getByRole('button', { name: `Stay logged in as ${own}` }).click();
  await isLoggedInAs(own);

  // So does the same address when its user opens it, for it would end the session of somebody else.
  await page.goto(vera);
  await question('vera').waitFor();
  await page.getByRole('button', { name: 'Log in as vera' }).click();
  await isLoggedInAs('vera');
  const info = (shown) => fetch(`${address}/api/v1/info`, { headers: { authorization: `Bearer ${shown}` } });
  assert.equal((await info(session)).status, 401, 'the session that was replaced has ended');

  // Another one of the same user needs no question, if no page led there.
  await page.goto(await invite(viewer));
  await isLoggedInAs('vera');
  const last = await key();
  assert.equal((await info(last)).status, 200);

  // Logging out ends the session at the controller, and in all tabs.
  const second = await context.newPage();
  await second.goto(address);
  await second.locator('.user-name').waitFor();
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByLabel('Token').waitFor();
  await second.getByLabel('Token').waitFor();
  await second.close();
  assert.equal((await info(last)).status, 401, 'it has ended');
  await look('login');

  // A browser that is not logged in is asked if a page led it there, and not if its user did.
  const once = await invite(viewer);
  await follow(once);
  await question('vera').waitFor();
  await look('question');
  await page.getByRole('button', { name: 'Do not log in' }).click();
  await page.getByLabel('Token').waitFor();
  assert.equal(await key(), null);
  await page.goto(once);
  await isLoggedInAs('vera');
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByLabel('Token').waitFor();
  await page.goto(once);
  await page.getByRole('alert').getByText('this login address was used already').waitFor();
  await look('used');
} finally {
  stranger.stop();
  await chrome.close();
}
