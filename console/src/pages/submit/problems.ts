/** Which problems of a document are shown at once. */

import type { Problem } from '../../api';

/**
 * Errors first, then warnings. What holds for every document of its format, whatever this one says, is to be unfolded.
 */
export function sorted(problems: readonly Problem[]): { shown: Problem[]; folded: Problem[] } {
  const shown = problems.filter((one) => !one.general);
  const folded = new Map(problems.filter((one) => one.general).map((one) => [one.message, one]));
  return {
    shown: shown.filter((one) => !one.warning).concat(shown.filter((one) => one.warning)),
    folded: [...folded.values()],
  };
}
