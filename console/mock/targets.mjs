/** The kinds of targets, as the engines declare them; a test of the controller keeps the file up to date. */

import { readFileSync } from 'node:fs';

export const targets = JSON.parse(readFileSync(new URL('./targets.json', import.meta.url), 'utf8'));
