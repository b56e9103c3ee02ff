/** Which problems of a document are shown at once. */

import type { Problem } from '../../api';

/**
 * Errors first, then warnings about a place in the document. Warnings without a place are remarks that hold for all
 * documents of a kind: each once, to be unfolded.
 */
export function sorted(problems: readonly Problem[]): { shown: Problem[]; folded: Problem[] } {
  const remark = ({ warning, line }: Problem) => warning && line === 0;
  const shown = problems.filter((one) => !remark(one));
  const folded = new Map(problems.filter(remark).map((one) => [one.message, one]));
  return {
    shown: shown.filter((one) => !one.warning).concat(shown.filter((one) => one.warning)),
    folded: [...folded.values()],
  };
}
