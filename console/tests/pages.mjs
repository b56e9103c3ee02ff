/** Every page opens without errors, fits the window, and has no serious violation of accessibility rules. */

import assert from 'node:assert/strict';
import { openNamed, pages, violations } from './harness.mjs';

export const name = 'pages';

export async function test(chrome, address) {
  const wrong = [];
  for (const named of pages) {
    for (const [width, dark] of [
      [1440, false],
      [360, true],
    ]) {
      const { page, errors, close } = await openNamed(chrome, address, named, { width, dark });
      const beyond = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      const headings = await page.locator('main h1').count();
      const found = [
        ...errors,
        ...(beyond > 0 ? [`${beyond} px too wide`] : []),
        ...(headings === 1 ? [] : [`${headings} main headings`]),
        ...(await violations(page)),
      ];
      wrong.push(...found.map((what) => `${named[0]} at ${width} px: ${what}`));
      await close();
    }
  }
  assert.deepEqual(wrong, []);
}
