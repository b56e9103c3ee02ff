/** A file that was dropped elsewhere, on its way to the page that submits it. */

export interface Handed {
  text: string;
  name: string;
}

let waiting: Handed | undefined;

export function hand(file: Handed): void {
  waiting = file;
}

/** The file, once. */
export function taken(): Handed | undefined {
  const once = waiting;
  waiting = undefined;
  return once;
}
