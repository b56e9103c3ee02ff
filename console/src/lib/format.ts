/** Numbers with their units, as `crates/measure/src/units.rs` writes them in reports: kB = 1000 B, op/s, µs to hours. */

/** `1 234 567`, with narrow no-break spaces. */
export const count = (value: number) => Math.round(value).toLocaleString('en-US').replaceAll(',', '\u202f');

/** Three significant digits, whole numbers with separators. */
function digits(value: number): string {
  const size = Math.abs(value);
  if (size >= 100 || value === 0) return count(value);
  return value.toFixed(size >= 10 ? 1 : 2);
}

function scaled(value: number, step: number, units: string[], space: string): string {
  let index = 0;
  // 999.5 would be written as 1000 of the smaller unit.
  while (Math.abs(value) >= step - 0.5 && index + 1 < units.length) {
    value /= step;
    index += 1;
  }
  return `${index === 0 && Number.isInteger(value) ? value : digits(value)}${space}${units[index]}`;
}

/** For axes and tiles: `8`, `0.50`, `12.3k`, `1.20M`. */
export function short(value: number): string {
  if (Math.abs(value) >= 10_000) return scaled(value, 1000, ['', 'k', 'M', 'G', 'T'], '');
  return Number.isInteger(value) ? count(value) : digits(value);
}

/** `64.0 kB`, units of 1000. */
export const bytes = (value: number) => scaled(value, 1000, ['B', 'kB', 'MB', 'GB', 'TB', 'PB'], ' ');

/** `7.80 GiB`, units of 1024, as memory is sold. */
export const memory = (value: number) => scaled(value, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'], ' ');

/** `444 MB/s`. */
export const bandwidth = (perSecond: number) => `${bytes(perSecond)}/s`;

/** `9 713 op/s`. */
export const rate = (perSecond: number) => `${digits(perSecond)} op/s`;

/** `14.8 %` of a share of 1. Nothing but all is 100 %, nothing but none is 0 %. */
export function percent(share: number): string {
  // 0.58 * 100 is 57.99999999999999.
  const value = Number((share * 100).toFixed(6));
  if (value > 99.9 && value < 100) return '>99.9 %';
  if (value > 0 && value < 0.01) return '<0.01 %';
  return `${Number.isInteger(value) ? value : value.toFixed(value < 1 ? 2 : 1)} %`;
}

/** `710 µs`, `1.38 ms`, `12.0 s`. */
export function latency(us: number): string {
  if (us < 999.5) return `${digits(us)} µs`;
  return us < 999_500 ? `${digits(us / 1e3)} ms` : `${digits(us / 1e6)} s`;
}

/** `45 s`, `2 m 05 s`, `3 h 20 m`: a length of time that people wait for. */
export function duration(ms: number): string {
  if (ms < 10_000) return `${(ms / 1000).toFixed(ms < 1000 ? 2 : 1)} s`;
  const seconds = Math.round(ms / 1000);
  const two = (value: number) => String(value).padStart(2, '0');
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m ${two(seconds % 60)} s`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${two(Math.floor(seconds / 60) % 60)} m`;
  return `${Math.floor(seconds / 86_400)} d ${two(Math.floor(seconds / 3600) % 24)} h`;
}

/** `2:05`, `1:02:05`: a place on a time axis, seconds. */
export function clock(seconds: number): string {
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0');
  const whole = Math.round(seconds);
  const hours = whole >= 3600 ? `${Math.floor(whole / 3600)}:` : '';
  return `${hours}${hours ? two((whole % 3600) / 60) : Math.floor(whole / 60)}:${two(whole % 60)}`;
}

/** Local time, short: today's without the date. */
export function moment(unixMs: number, now = Date.now()): string {
  const date = new Date(unixMs);
  const sameDay = date.toDateString() === new Date(now).toDateString();
  const time: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit' };
  const day: Intl.DateTimeFormatOptions = { day: 'numeric', month: 'short', ...time };
  const sameYear = date.getFullYear() === new Date(now).getFullYear();
  const form = sameDay
    ? { ...time, second: '2-digit' as const }
    : sameYear
      ? day
      : { ...day, year: 'numeric' as const };
  return date.toLocaleString(undefined, { ...form, hourCycle: 'h23' });
}

/** Local time with everything, for tooltips. */
export const fullMoment = (unixMs: number) =>
  new Date(unixMs).toLocaleString(undefined, { dateStyle: 'full', timeStyle: 'long' });

/** `1 run`, `2 runs`. */
export const plural = (number: number, one: string, many = `${one}s`) =>
  `${count(number)} ${number === 1 ? one : many}`;
