/** A rough check of documents: enough to see problems in the editor come and go. The real one is the controller's. */

import { targets } from './targets.mjs';

/** Those of targets, as the engines declare them. */
const ofTargets = (forms) => forms.flatMap(({ keys }) => keys.flatMap((key) => [key.name, ...ofTargets(key.kinds)]));

const keys = new Set([
  ...ofTargets(targets.flatMap(({ form, works }) => [form, ...works])),
  ...'name description seed target naming content stages kind init prepare load cleanup dispose workers for warm_up ramp_up rate containers objects pool existing operations get put delete list weight sizes page verify total_operations pause observe arms loads repeats works arrivals pattern reads block_size depth levels service_level precondition'.split(
    ' ',
  ),
]);

const problem = (line, column, length, message, help, warning = false, general = false) => ({
  warning,
  general,
  line,
  column,
  length,
  message,
  help,
});

export function check(document) {
  const xml = document.trimStart().startsWith('<');
  const lines = document.split('\n');
  const problems = [];
  if (!document.trim()) problems.push(problem(0, 1, 0, 'the document is empty', 'write a workload, or upload one'));
  const stages = [];
  if (xml) {
    for (const [, name] of document.matchAll(/<workstage[^>]*name="([^"]*)"/g)) stages.push(stage(name));
    const general =
      '5 differences are those of every COSBench file: throughput is all work divided by the time it took.';
    problems.push(problem(0, 0, 0, general, '', true, true));
    if (!/<\/workload>/.test(document))
      problems.push(problem(lines.length, 1, 1, '`workload` is not closed', 'end the document with `</workload>`'));
  } else if (document.trim()) {
    lines.forEach((line, index) => {
      const found = /^(\s*(?:- )?)([A-Za-z_]+):/.exec(line);
      const key = found?.[2];
      if (key && !keys.has(key))
        problems.push(
          problem(
            index + 1,
            found[1].length + 1,
            key.length,
            `\`${key}\` is not a key here`,
            key === 'fro' ? 'did you mean `for`?' : 'docs/document.md lists all keys',
          ),
        );
      if (line.includes('\t'))
        problems.push(problem(index + 1, line.indexOf('\t') + 1, 1, 'a tab cannot indent', 'use spaces'));
      const named = /^\s*- (?:name: (\S+)|(init|prepare|cleanup|dispose):)/.exec(line);
      const depth = /^levels:/m.test(document) ? /^ {6}-/ : /^ {2}-/;
      if (named && depth.test(line)) stages.push(stage(named[1] ?? named[2]));
    });
    if (!/^name:/m.test(document))
      problems.push(problem(0, 1, 0, 'the document has no `name`', 'begin with `name: my-workload`'));
    if (!/^(target|arms):/m.test(document))
      problems.push(problem(1, 1, 1, 'nothing says what load is put on', 'write `target: embedded` to try'));
    if (/verify: false/.test(document))
      problems.push(problem(1, 1, 4, 'what is read is not checked', 'write `content: {verify: true}`', true));
  }
  const name = (xml ? /<workload[^>]*name="([^"]*)"/ : /^name: *(.*)$/m).exec(document)?.[1] ?? '';
  return {
    ok: problems.every((one) => one.warning),
    format: xml ? 'COSBench XML' : 'Tidemark YAML',
    name,
    problems,
    explanation: stages.map((one, index) => `${index + 1}. ${one.name}: ${one.works[0]}`),
    stages,
    expected_ms: stages.length ? 68_000 : null,
    bytes: 131_072_000,
  };
}

const stage = (name) => ({
  name,
  works: [
    name === 'main' || name === 'load' ? '16 workers: 70 % read, 30 % write, for 60 s' : `8 workers, until all is done`,
  ],
  expected_ms: name === 'main' ? 62_000 : name === 'prepare' ? 4000 : null,
});
