import { readFileSync } from 'node:fs';
import { Validator } from '@seriousme/openapi-schema-validator';
import { describe, expect, it } from 'vitest';
import { description, target, types } from './types.mjs';

describe('the API', () => {
  it('is described by a valid OpenAPI document', async () => {
    const document = JSON.parse(readFileSync(description, 'utf8'));
    expect(await new Validator().validate(document)).toEqual({ valid: true });
    // The validator does find something: a reply without a description is none.
    const replies = { responses: { 200: {} } };
    const broken = { ...document, paths: { '/x': { get: replies } } };
    expect((await new Validator().validate(broken)).valid).toBe(false);
  });

  it('has the types that src/api.ts declares: run `npm run types` if not', async () => {
    expect(readFileSync(target, 'utf8')).toBe(await types());
  });
});
