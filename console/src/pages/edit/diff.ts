/** Which lines two texts share, and which only one of them has. */

export interface Line {
  sign: ' ' | '-' | '+';
  text: string;
}

/** Texts of more lines than this, after what they begin and end with alike, are told as replaced. */
const most = 2000;

/** The shortest way from one text to the other: longest common subsequence of the lines that differ. */
export function diff(before: string, after: string): Line[] {
  const [a, b] = [before.split('\n'), after.split('\n')];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const [left, right] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  const same = (text: string): Line => ({ sign: ' ', text });
  return [...a.slice(0, start).map(same), ...between(left, right), ...a.slice(a.length - end).map(same)];
}

function between(a: readonly string[], b: readonly string[]): Line[] {
  const minus = (text: string): Line => ({ sign: '-', text });
  const plus = (text: string): Line => ({ sign: '+', text });
  if (a.length * b.length > most * most) return [...a.map(minus), ...b.map(plus)];
  const width = b.length + 1;
  // The length of what the rests have in common.
  const common = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i * width + j] =
        a[i] === b[j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
    }
  }
  const lines: Line[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ sign: ' ', text: a[i++]! });
      j++;
    } else if (j >= b.length || (i < a.length && common[(i + 1) * width + j]! >= common[i * width + j + 1]!)) {
      lines.push(minus(a[i++]!));
    } else {
      lines.push(plus(b[j++]!));
    }
  }
  return lines;
}

/** The lines that changed, each with some around it; a null stands for lines that are left out. */
export function hunks(lines: readonly Line[], around = 2): (Line | null)[] {
  const near = (at: number) => lines.slice(Math.max(0, at - around), at + around + 1).some((line) => line.sign !== ' ');
  const shown: (Line | null)[] = [];
  lines.forEach((line, at) => {
    if (near(at)) shown.push(line);
    else if (shown[shown.length - 1] !== null) shown.push(null);
  });
  return shown;
}
