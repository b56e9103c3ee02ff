/** Takes pictures of all pages, light and dark, wide and narrow: `node tests/shots.mjs DIRECTORY [NAME...]`. */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { browser, mock, openNamed, pages } from './harness.mjs';

const [directory = 'shots', ...names] = process.argv.slice(2);
mkdirSync(directory, { recursive: true });
const server = await mock();
const chrome = await browser();
for (const named of pages.filter(([name]) => names.length === 0 || names.includes(name))) {
  for (const dark of [false, true]) {
    for (const width of [1440, 390]) {
      const { page, close } = await openNamed(chrome, server.address, named, { width, dark });
      await page.screenshot({
        path: join(directory, `${named[0]}-${dark ? 'dark' : 'light'}-${width}.png`),
        fullPage: true,
      });
      await close();
    }
  }
}
await chrome.close();
server.stop();
