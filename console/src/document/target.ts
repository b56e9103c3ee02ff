/** The `target` section of a document, from the kinds of targets and their keys that the controller declares. */

import type { Form, FormKey, TargetForm } from '../api';

/** What was entered: by path, such as `auth.url`. */
export type Values = Record<string, string>;

/** A key of a form, where its value stands, and the kind of mapping that its value is, if it is one. */
export interface Field {
  path: string;
  key: FormKey;
  kind?: Form;
  /** Whether it begins with its example: only what must be there does. A secret's example is a variable that may not be set. */
  begins: boolean;
}

/** A reference to the controller's environment, rather than the value itself. */
export const isReference = (secret: string) => /^\$\{[A-Za-z_][A-Za-z0-9_]*\}$/.test(secret);

/** What stands for a secret where it is shown. */
export const hidden = '••••••••';

/** The path of the kind of a mapping. */
export const kindOf = (path: string) => `${path}.kind`;

/** A key of a form; a mapping that must be there is of the first kind unless another was chosen. */
function field(form: Form, key: FormKey, above: string, values: Values): Field {
  const path = above + key.name;
  const chosen = key.kinds.find((kind) => kind.name === values[kindOf(path)]);
  const kind = chosen ?? (key.required ? key.kinds[0] : undefined);
  const begins = !key.secret && (key.required || form.one_of.includes(key.name));
  return kind ? { path, key, kind, begins } : { path, key, begins };
}

/** All fields of a form, each mapping followed by its own. */
export function fields(form: Form, values: Values, above = ''): Field[] {
  return form.keys.flatMap((key) => {
    const own = field(form, key, above, values);
    return own.kind ? [own, ...fields(own.kind, values, `${own.path}.`)] : [own];
  });
}

/** The value of a field: what was entered, or the example that it begins with. */
export const valueOf = ({ path, key, begins }: Field, values: Values): string =>
  values[path] ?? (begins ? key.example : '');

/** Whether a field is shown at once, rather than among further settings. */
export const isMain = ({ key }: Field) => key.required || key.example !== '';

/** A text as YAML: as it is where nothing in it can be taken for anything else, in quotes otherwise. */
export function text(value: string): string {
  const plain = /^[A-Za-z_/][\w ./-]*$/.test(value) && !/\s$/.test(value);
  const word = /^(true|false|yes|no|on|off|null)$/i.test(value);
  const quantity = /^\d+(\.\d+)?[A-Za-z%/]*$/.test(value);
  return (plain && !word) || quantity || isReference(value) ? value : JSON.stringify(value);
}

/** What was entered for a key, as YAML; what stands in braces or brackets is YAML already. */
export function value({ choices, list }: FormKey, entered: string): string {
  if (choices.includes(entered) || /^[{[]/.test(entered)) return entered;
  const items = list ? entered.split(',').map((item) => text(item.trim())) : [text(entered)];
  return items.length === 1 ? items[0]! : `[${items.join(', ')}]`;
}

/** A secret always is a text: one of digits alone is no number. */
const secret = (entered: string) => (isReference(entered) ? entered : JSON.stringify(entered));

function lines(form: Form, values: Values, above: string, indent: string, hide: boolean): string[] {
  const each = (key: FormKey): string[] => {
    const own = field(form, key, above, values);
    if (own.kind) return [`${indent}${key.name}:`, ...lines(own.kind, values, `${own.path}.`, `${indent}  `, hide)];
    const entered = valueOf(own, values).trim();
    if (!entered) return [];
    const plain = key.secret ? secret(entered) : value(key, entered);
    return [`${indent}${key.name}: ${key.secret && hide && !isReference(entered) ? hidden : plain}`];
  };
  return [`${indent}kind: ${form.name}`, ...form.keys.flatMap(each)];
}

/** The section's lines; `hide` puts dots in the place of secrets. */
export function target({ form, bare }: TargetForm, values: Values, hide = false): string[] {
  const all = lines(form, values, '', '  ', hide);
  return bare && all.length === 1 ? [`target: ${form.name}`] : ['target:', ...all];
}
