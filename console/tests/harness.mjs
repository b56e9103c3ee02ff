/** What browser tests need: the mock, Chromium, and pages that fail on any error that the console logs. */

import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const axe = readFileSync(here('../node_modules/axe-core/axe.min.js'), 'utf8');

/** Starts the mock, at a free port unless the flags name one; `stop` ends it. */
export async function mock(...flags) {
  const child = spawn(process.execPath, [here('../mock/server.mjs'), ...flags, '--port', '0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const address = await new Promise((resolve, reject) => {
    child.stdout.once('data', (data) => resolve(String(data).trim()));
    child.once('exit', (code) => reject(new Error(`the mock ended with ${code}`)));
  });
  return { address, stop: () => child.kill() };
}

export const browser = () =>
  chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });

/** A page of its own, and what went wrong on it. */
export async function open(chrome, address, { width = 1440, height = 900, dark = false, session } = {}) {
  // The content security policy is the page's; only the accessibility checks are put past it.
  const context = await chrome.newContext({
    viewport: { width, height },
    colorScheme: dark ? 'dark' : 'light',
    reducedMotion: 'reduce',
    storageState: session,
  });
  const page = await context.newPage();
  const errors = [];
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  page.on('pageerror', (error) => errors.push(error.stack ?? String(error)));
  await page.goto(address);
  return { page, errors, close: () => context.close() };
}

/** The session of a browser that has logged in by an address that works once. */
export async function logIn(chrome, login) {
  const { page, close } = await open(chrome, login);
  await page.waitForFunction(() => localStorage.getItem('tidemark.session'));
  const session = await page.context().storageState();
  await close();
  return session;
}

/** Drops a file on an element, as a user does. */
export async function drop(page, selector, name, text) {
  const data = await page.evaluateHandle(
    ([name, text]) => {
      const data = new DataTransfer();
      data.items.add(new File([text], name, { type: 'text/plain' }));
      return data;
    },
    [name, text],
  );
  for (const event of ['dragenter', 'dragover', 'drop'])
    await page.dispatchEvent(selector, event, { dataTransfer: data });
}

/** Serious violations of accessibility rules, in words. */
export async function violations(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  return serious.map(
    ({ id, nodes }) =>
      `${id}: ${nodes
        .slice(0, 3)
        .map((node) => node.html.slice(0, 160))
        .join(' | ')} (${nodes[0]?.failureSummary?.split('\n')[1]?.trim() ?? ''})`,
  );
}

/** All pages, with what is on them once they are there. */
export const pages = [
  ['overview', '/', '.data tbody tr'],
  ['submit', '/submit', '.editor'],
  ['form', '/submit?form', '.stage'],
  ['form-s3', '/submit?form', '.stage', (page) => page.getByLabel('Kind of target').selectOption('s3')],
  ['form-file', '/submit?form', '.stage', (page) => page.getByLabel('Kind of target').selectOption('file')],
  ['form-sweep', '/submit?form', '.stage', (page) => page.getByRole('button', { name: 'Sweep of sizes' }).click()],
  ['live', '/w/101', '.chart canvas'],
  ['board', '/w/102', '.board'],
  ['queued', '/w/110', '.notice'],
  ['ended', '/w/99', '.work table'],
  ['edit', '/w/99/edit', '.editor'],
  ['runs', '/runs', '.data tbody tr'],
  ['run', '/runs/999', '.work table'],
  ['invalid', '/runs/988', '.work table'],
  ['stage', '/runs/999/stages/3', '.work table'],
  ['matrix', '/matrix', '.chart canvas'],
  ['compare', '/compare?a=991,992&b=995,996', '.changes'],
  ['nothing', '/compare?a=989&b=995', '.notice'],
  ['evaluations', '/evaluations', '.data tbody tr'],
  ['evaluation', '/evaluations/23', 'iframe'],
  ['audit', '/audit', '.data tbody tr'],
];

/** Opens one of the pages and waits until it is there. */
export async function openNamed(chrome, address, [, path, there, then], options) {
  const opened = await open(chrome, address + path, options);
  await opened.page.waitForSelector(there);
  if (then) await then(opened.page);
  await opened.page.waitForTimeout(300);
  return opened;
}
