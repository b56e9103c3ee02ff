/** Makes `src/api.ts` from the controller's OpenAPI description: one type for each schema, `npm run types`. */

import { readFileSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { format, resolveConfig } from 'prettier';

export const description = new URL('../../crates/serve/openapi.json', import.meta.url);
export const target = new URL('../src/api.ts', import.meta.url);

const head = '/** Made from `crates/serve/openapi.json` by `npm run types`: not to be edited. */\n\n';

/** Everything that a schema may say and that a type cannot: it is checked by the controller. */
const beyond = new Set(['description', 'format', 'minimum', 'maximum', 'default', 'propertyNames', 'examples']);

function comment(text) {
  if (!text) return '';
  const safe = text.replaceAll('*/', '* /').replaceAll('\n', ' ');
  return `/** ${safe} */\n`;
}

/** The type of a schema; throws at what it does not know, so that nothing is left out unseen. */
function type(schema) {
  if (schema === undefined || schema === true) return 'unknown';
  const {
    $ref,
    oneOf,
    allOf,
    enum: values,
    type: kind,
    items,
    prefixItems,
    properties,
    required,
    additionalProperties,
    ...rest
  } = schema;
  const unknown = Object.keys(rest).filter((key) => !beyond.has(key));
  if (unknown.length > 0) throw new Error(`types.mjs does not know ${unknown.join(', ')}: ${JSON.stringify(schema)}`);
  if ($ref) return $ref.replace('#/components/schemas/', '');
  if (oneOf) return oneOf.map(type).join(' | ');
  if (allOf) return allOf.map((part) => `(${type(part)})`).join(' & ');
  if (kind === undefined && !values) return 'unknown';
  if (values) return values.map((value) => JSON.stringify(value)).join(' | ');
  const one = (kind) => {
    switch (kind) {
      case 'null':
      case 'string':
      case 'boolean':
        return kind;
      case 'integer':
      case 'number':
        return 'number';
      case 'array':
        return prefixItems ? `[${prefixItems.map(type).join(', ')}]` : `(${type(items)})[]`;
      case 'object':
        return properties ? object(properties, required) : `Record<string, ${type(additionalProperties)}>`;
      default:
        throw new Error(`types.mjs does not know the type ${kind}: ${JSON.stringify(schema)}`);
    }
  };
  return [kind].flat().map(one).join(' | ');
}

function object(properties, required = []) {
  const lines = Object.entries(properties).map(
    ([name, schema]) => `${comment(schema.description)}${name}${required.includes(name) ? '' : '?'}: ${type(schema)};`,
  );
  return `{\n${lines.join('\n')}\n}`;
}

function declaration([name, schema]) {
  const declared = schema.properties
    ? `export interface ${name} ${object(schema.properties, schema.required)}`
    : `export type ${name} = ${type(schema)};`;
  return comment(schema.description) + declared;
}

/** The text of `src/api.ts`. */
export async function types() {
  const { components } = JSON.parse(readFileSync(description, 'utf8'));
  const text = head + Object.entries(components.schemas).map(declaration).join('\n\n');
  return format(text, { ...(await resolveConfig(target)), parser: 'typescript' });
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) writeFileSync(target, await types());
