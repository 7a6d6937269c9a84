/**
 * The rules and numbers of the engine that an ablation changes one by one. The built engine is loaded with switches for
 * them, as edits of its files: one program for all rules stays warm, and notes to which series a rule makes a difference.
 */
import { existsSync, readFileSync } from 'node:fs';
import { GATES } from '../../../../domain/reconciliation/engine/index.js';
import type { Edit } from './hooks.js';

export interface Rule {
  kind: 'explanation' | 'doubt' | 'nuisance' | 'gate' | 'account' | 'number';
  name: string;
  /**
   * The series that are explained again without it: those of which the whole engine notes a difference, all series,
   * or none (it concerns an account's findings).
   */
  again: 'noted' | 'all' | 'none';
  /** Of a number: in quarters of what it is. */
  quarters?: number;
}

/** The state of the switches, under this name among all programs' names: the edited engine reads and calls it. */
export const SWITCHES = 'switchesOfAblation';

export interface Switches {
  /** Name of the function or gate that is left out. */
  without: string | undefined;
  /** Called by the whole engine with the name of a rule, or an explanation itself, that makes a difference. */
  note: ((rule: unknown) => void) | undefined;
  /** Makes a number so many quarters of what it is; returns how to make it what it was. Set by the engine. */
  setNumber?: (name: string, quarters: number) => () => void;
}

const ENGINE = 'domain/reconciliation/engine';

/** Of the built file; of the source where this module is not built. */
function textOf(file: string): string {
  const built = new URL(`../../../../${ENGINE}/${file}`, import.meta.url);
  const source = new URL(built.href.replace(/js$/, 'ts'));
  return readFileSync(existsSync(built) ? built : source, 'utf8');
}

/** Every rule: explanations of the library, doubts about runs, nuisances, gates, and rules of an account. */
export function rules(): Rule[] {
  return [
    ...explanationNames().map((name): Rule => ({ kind: 'explanation', name, again: 'noted' })),
    ...FUNCTIONS.map(({ kind, name, counts }): Rule => {
      const noted = counts === undefined ? 'all' : 'noted';
      return { kind, name, again: kind === 'account' ? 'none' : noted };
    }),
    ...GATES.map((name): Rule => ({ kind: 'gate', name, again: 'noted' })),
  ];
}

/** The names of the library's explanations in its program, in its order. */
export function explanationNames(): string[] {
  const [, list = ''] = /HYPOTHESES\b.* = \[([^\]]*)\]/.exec(textOf('causes/library.js')) ?? [];
  return list.match(/\w+/g) ?? [];
}

/** A function that makes a rule. */
interface RuleFunction {
  kind: Rule['kind'];
  file: string;
  name: string;
  /** The result without such a rule, from what it was `given`. */
  returns: string;
  /** Whether it makes a difference, by what it was `given` and has `found`; absent: wherever it is asked. */
  counts?: string;
}

const FUNCTIONS: readonly RuleFunction[] = [
  doubt('doubts.js', 'isRuledOutByHistory', 'false', 'found'),
  doubt('doubts.js', 'isCheaperUse', 'false', 'found'),
  doubt('doubts.js', 'missesCounts', 'false', 'found'),
  doubt('doubts.js', 'isNoFactor', 'false', 'found'),
  doubt('doubts.js', 'isGuess', 'false', 'found'),
  doubt('doubts.js', 'oddsAgainstOurPrice', 'null', 'found !== null'),
  doubt('findings.js', 'isMatterOfADay', 'false', 'found'),
  doubt('states.js', 'contradict', 'undefined', 'false'),
  doubt('states.js', 'fitBeside', 'given[2]', 'found !== given[2]'),
  doubt('states.js', 'refuteUnsaid', 'undefined', undefined),
  nuisance('series/states.js', 'addUnseen', '[]', 'found.length > 0'),
  nuisance('series/states.js', 'markEdges', 'undefined', 'given[0].some((one) => one.isEdge)'),
  nuisance('series/doubts.js', 'untoldDiscounts', 'new Map()', 'found.size > 0'),
  nuisance('series/seenLess.js', 'fewerSeen', 'undefined', 'found !== undefined'),
  nuisance('series/fit.js', 'partialFit', 'undefined', 'found !== undefined'),
  nuisance('series/fit.js', 'mixtureOf', '0', undefined),
  nuisance('causes/bookedLate.js', 'bookedPartsOf', 'undefined', 'found !== undefined'),
  { kind: 'account', file: 'account/movedModels.js', name: 'findMovedUse', returns: '[]' },
  {
    kind: 'account',
    file: 'account/suspectUse.js',
    name: 'findSuspectUse',
    returns: '[...given[1], ...given[2]]',
  },
];

function doubt(file: string, name: string, returns: string, counts: string | undefined): RuleFunction {
  return { kind: 'doubt', file: `series/${file}`, name, returns, ...(counts ? { counts } : {}) };
}

function nuisance(file: string, name: string, returns: string, counts: string | undefined): RuleFunction {
  return { kind: 'nuisance', file, name, returns, ...(counts ? { counts } : {}) };
}

const note = (what: string): string => `globalThis.${SWITCHES}.note?.(${what});`;
const isWithout = (name: string): string => `globalThis.${SWITCHES}.without === ${name}`;

const switchOf = ({ file, name, returns, counts }: RuleFunction): Edit => ({
  file: `${ENGINE}/${file}`,
  find: `^(export )?function ${name}\\(`,
  replace: [
    `$1function ${name}(...given) {`,
    `    if (${isWithout(`'${name}'`)}) return ${returns};`,
    `    const found = ${name}Itself(...given);`,
    `    if (${counts ?? 'false'}) ${note(`'${name}'`)}`,
    '    return found;',
    '}',
    `function ${name}Itself(`,
  ].join('\n'),
});

/** Explanations without a chance on any day of a series change nothing of it. */
const CHANCE_MIN = 1e-6;

/** All switches. An explanation has none: it is left out of the library that the engine is given. */
export function switches(): Edit[] {
  return [
    ...FUNCTIONS.map(switchOf),
    {
      file: `${ENGINE}/series/judge.js`,
      find: '^function judge\\(series[^)]*\\)[^{]*\\{$',
      replace: `$& series.states.forEach((one, at) => { if (pooled[at] > ${CHANCE_MIN}) ${note('one.hypothesis')} });`,
    },
    // Explanations by the usage report, and `contradict`, change days on which that report and the bill are apart.
    {
      file: `${ENGINE}/series/states.js`,
      find: 'if \\(!isApart \\|\\|',
      replace: `if (isApart) { ${note("'contradict'")} for (const one of hypotheses) if (one.needs.includes('usage_report')) ${note('one')} }\n    $&`,
    },
    {
      file: `${ENGINE}/series/gates.js`,
      find: 'const holds = \\(gate[^)]*\\)[^=]*=>\\s*([^;]*);',
      replace: `const holds = (gate) => { if (${isWithout('gate')}) return true; const is = $1; if (!is) ${note('gate')} return is; };`,
    },
    ...numberNames().map((name) => ({
      file: CALIBRATION,
      find: `^export const ${name} = `,
      replace: `export let ${name} = `,
    })),
    { file: CALIBRATION, find: '$(?![\\s\\S])', replace: `\n${setNumber()}` },
  ];
}

const CALIBRATION = `${ENGINE}/calibration.js`;

/** Fitted by another command, shares of a price list, or read once for all (movedModels.ts). */
const NO_NUMBERS: ReadonlySet<string> = new Set(['FITTED', 'CACHE_SHARES', 'NOT_ANSWERED_MAX']);

function numberNames(): string[] {
  const names = textOf('calibration.js').matchAll(/^export const ([A-Z]\w*) = /gm);
  return [...names].map(([, name = '']) => name).filter((name) => !NO_NUMBERS.has(name));
}

/** Every number of the calibration, 25 % smaller and larger; shares above a half by their distance from 1. */
export function numbers(): Rule[] {
  return numberNames().flatMap((name) =>
    [3, 5].map((quarters): Rule => ({ kind: 'number', name, again: 'all', quarters })),
  );
}

/** In the text of the built file: integers stay integers, rounded away from where they were. */
const setNumber = (): string => `function scale(value, quarters) {
  if (Array.isArray(value)) return value.map((one) => scale(one, quarters));
  if (typeof value === 'object')
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, scale(one, quarters)]));
  if (typeof value === 'bigint') return quarters > 4 ? (value * 5n + 3n) / 4n : (value * 3n) / 4n;
  if (value > 0.5 && value < 1) return 1 - ((1 - value) * (8 - quarters)) / 4;
  return (value * quarters) / 4;
}
globalThis.${SWITCHES}.setNumber = (name, quarters) => {
  switch (name) {
${numberNames()
  .map(
    (name) =>
      `    case '${name}': { const usual = ${name}; ${name} = scale(usual, quarters); return () => { ${name} = usual; }; }`,
  )
  .join('\n')}
  }
};
`;
