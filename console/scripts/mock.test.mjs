import { readFileSync } from 'node:fs';
import Ajv from 'ajv/dist/2020.js';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { mock } from '../tests/harness.mjs';
import { description } from './types.mjs';

/** Replies of the mock, and the schemas that the controller's description has for them. */
const replies = [
  ['/info', 'Info'],
  ['/overview', 'Overview'],
  ['/drivers', 'Driver'],
  ['/targets', 'TargetForm'],
  ['/submissions', 'Submission'],
  ['/submissions/97', 'Submission'],
  ['/submissions/101/live', 'LiveRun'],
  ['/submissions/102/live', 'LiveRun'],
  ['/history', 'History'],
  ['/runs/1000/remark', 'Remark'],
  ['/runs', 'RunRow'],
  ['/runs/999', 'RunRecord'],
  ['/runs/988', 'RunRecord'],
  ['/runs/999/figures', 'Figure'],
  ['/matrix', 'MatrixRow'],
  ['/compare?a=990,991&b=995,996', 'Comparison'],
  ['/evaluations', 'EvaluationRow'],
  ['/audit', 'AuditRow'],
];

let server;
beforeAll(async () => (server = await mock()));
afterAll(() => server.stop());

const { components } = JSON.parse(readFileSync(description, 'utf8'));
const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true });

it.each(replies)('the mock answers %s as the controller does', async (path, schema) => {
  const reply = await (await fetch(`${server.address}/api/v1${path}`)).json();
  const fits = ajv.compile({ components, $ref: `#/components/schemas/${schema}` });
  const rows = Array.isArray(reply) ? reply : [reply];
  expect(rows.length).toBeGreaterThan(0);
  const wrong = rows.slice(0, 50).flatMap((row) => (fits(row) ? [] : fits.errors));
  expect(wrong.slice(0, 9).map(({ instancePath, message }) => `${instancePath} ${message}`)).toEqual([]);
});
