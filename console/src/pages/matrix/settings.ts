/** Settings of an operation as the document wrote them: `pattern=randread;block_size=4 KiB;depth=8`. */

/** The value of the first of these settings that there is. */
export function setting(config: string, ...names: string[]): string | null {
  const pairs = config.split(';').map((pair) => {
    const at = pair.indexOf('=');
    return [pair.slice(0, at).trim(), pair.slice(at + 1).trim()] as const;
  });
  for (const name of names) {
    const found = pairs.find(([key]) => key === name);
    if (found?.[1]) return found[1];
  }
  return null;
}

const units: Record<string, number> = {
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  KIB: 1024,
  MIB: 1024 ** 2,
  GIB: 1024 ** 3,
};

/** What sizes are sorted by: the first number in them, in bytes. */
export function sizeOrder(size: string): number {
  const found = /(\d+(?:\.\d+)?)[^A-Za-z]*([KMG]?i?B)/i.exec(size);
  return found ? Number(found[1]) * (units[found[2]!.toUpperCase()] ?? 1) : 0;
}

/** Sizes as people write them: `64 KB` for `c(64)KB`, `4–64 KB` for `u(4,64)KB`; others as they are. */
export function sizeWords(sizes: string): string {
  const found = /^(?:c\((\d+)\)|u\((\d+),\s*(\d+)\)|(\d+))\s*([KMG]?i?B)$/.exec(sizes);
  if (!found) return sizes;
  const [, one, from, to, plain, unit] = found;
  const number = Number(one ?? plain);
  // Documents in KiB have bytes in their settings.
  if (unit === 'B' && number >= 1024 && number % 1024 === 0) {
    const power = number % 1024 ** 2 === 0 ? 2 : 1;
    return `${number / 1024 ** power} ${power === 2 ? 'MiB' : 'KiB'}`;
  }
  return `${from ? `${from}–${to}` : (one ?? plain)} ${unit}`;
}
