/** Runs the browser tests against the mock and the built console: `npm run build && npm run browser [-- NAME...]`. */

import { browser, mock } from './harness.mjs';

const files = ['load', 'pages', 'theme', 'start', 'submit', 'queue', 'tables', 'compare', 'stream', 'roles'];
const wanted = process.argv.slice(2);
const chrome = await browser();
let failed = 0;
for (const file of files.filter((file) => wanted.length === 0 || wanted.includes(file))) {
  const { name, test } = await import(`./${file}.mjs`);
  const server = await mock();
  try {
    await test(chrome, server.address);
    console.log(`ok    ${name}`);
  } catch (error) {
    failed++;
    console.log(`FAIL  ${name}\n${error.stack ?? error}`);
  }
  server.stop();
}
await chrome.close();
process.exitCode = failed > 0 ? 1 : 0;
