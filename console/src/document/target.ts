/** The `target` section of a document, from the kinds of targets and their keys that the controller declares. */

import type { Form, FormKey, TargetForm } from '../api';

/** What was entered: by path, such as `auth.url`. */
export type Values = Record<string, string>;

/** A key of a form, where its value stands, and the kind of mapping that its value is, if it is one. */
export interface Field {
  path: string;
  key: FormKey;
  kind?: Form;
}

/** A secret that stands in the document as it is, where everybody who can look would want a reference to the environment. */
export const isReference = (secret: string) => /^\$\{[A-Za-z_][A-Za-z0-9_]*\}$/.test(secret);

/** The path of the kind of a mapping. */
export const kindOf = (path: string) => `${path}.kind`;

/** A key of a form; a mapping is of the first kind unless another was chosen. */
function field(key: FormKey, above: string, values: Values): Field {
  const path = above + key.name;
  const kind = key.kinds.find((kind) => kind.name === values[kindOf(path)]) ?? key.kinds[0];
  return kind ? { path, key, kind } : { path, key };
}

/** All fields of a form, each mapping followed by its own. */
export function fields(form: Form, values: Values, above = ''): Field[] {
  return form.keys.flatMap((key) => {
    const own = field(key, above, values);
    return own.kind ? [own, ...fields(own.kind, values, `${own.path}.`)] : [own];
  });
}

/** The value of a field: what was entered, or the example that it begins with. */
export const valueOf = ({ path, key }: Field, values: Values): string => values[path] ?? key.example;

/** Whether a field is shown at once, rather than among further settings. */
export const isMain = ({ key }: Field) => key.required || key.example !== '';

/** A text as YAML: as it is where nothing in it can be taken for anything else, in quotes otherwise. */
export function text(value: string): string {
  const plain = /^[A-Za-z_/][\w ./-]*$/.test(value) && !/\s$/.test(value);
  const word = /^(true|false|yes|no|on|off|null)$/i.test(value);
  const quantity = /^\d+(\.\d+)?[A-Za-z%/]*$/.test(value);
  return (plain && !word) || quantity || isReference(value) ? value : JSON.stringify(value);
}

function value({ choices, list }: FormKey, entered: string): string {
  if (choices.includes(entered)) return entered;
  const items = list ? entered.split(',').map((item) => text(item.trim())) : [text(entered)];
  return items.length === 1 ? items[0]! : `[${items.join(', ')}]`;
}

function lines(form: Form, values: Values, above: string, indent: string): string[] {
  const each = (key: FormKey): string[] => {
    const own = field(key, above, values);
    if (own.kind) return [`${indent}${key.name}:`, ...lines(own.kind, values, `${own.path}.`, `${indent}  `)];
    const entered = valueOf(own, values).trim();
    return entered ? [`${indent}${key.name}: ${value(key, entered)}`] : [];
  };
  return [`${indent}kind: ${form.name}`, ...form.keys.flatMap(each)];
}

/** The section's lines. */
export function target({ form, bare }: TargetForm, values: Values): string[] {
  const all = lines(form, values, '', '  ');
  return bare && all.length === 1 ? [`target: ${form.name}`] : ['target:', ...all];
}
