/** The rules and numbers of the engine that an ablation changes one by one, as edits of the built files. */
import { existsSync, readFileSync } from 'node:fs';
import { GATES } from '../../../../domain/reconciliation/engine/index.js';
import type { Edit } from './hooks.js';

export interface Rule {
  kind: 'explanation' | 'doubt' | 'nuisance' | 'gate' | 'account' | 'number';
  name: string;
  edit: Edit;
}

const ENGINE = 'domain/reconciliation/engine';

/** Of the built file; of the source where this module is not built. */
function textOf(file: string): string {
  const built = new URL(`../../../../${ENGINE}/${file}`, import.meta.url);
  const source = new URL(built.href.replace(/js$/, 'ts'));
  return readFileSync(existsSync(built) ? built : source, 'utf8');
}

/** Every rule, left out: explanations of the library, doubts about runs, nuisances, gates, and rules of an account. */
export function rules(): Rule[] {
  return [...explanations(), ...FUNCTIONS.map(withoutFunction), ...GATES.map(withoutGate)];
}

function explanations(): Rule[] {
  const [, list = ''] = /HYPOTHESES\b.* = \[([^\]]*)\]/.exec(textOf('causes/library.js')) ?? [];
  return (list.match(/\w+/g) ?? []).map((name) => ({
    kind: 'explanation',
    name,
    edit: { file: `${ENGINE}/causes/library.js`, find: `^\\s+${name},$`, replace: '' },
  }));
}

/** Functions that make a rule, with what they return if there is no such rule. */
const FUNCTIONS: readonly (readonly [kind: Rule['kind'], file: string, name: string, returns: string])[] = [
  ['doubt', 'series/doubts.js', 'oddsAgainstOurPrice', 'null'],
  ['doubt', 'series/doubts.js', 'isRuledOutByHistory', 'false'],
  ['doubt', 'series/doubts.js', 'isCheaperUse', 'false'],
  ['doubt', 'series/doubts.js', 'missesCounts', 'false'],
  ['doubt', 'series/doubts.js', 'isGuess', 'false'],
  ['doubt', 'series/findings.js', 'isMatterOfADay', 'false'],
  ['doubt', 'series/states.js', 'refuteUnsaid', 'undefined'],
  ['doubt', 'series/states.js', 'contradict', 'undefined'],
  ['nuisance', 'series/states.js', 'addUnseen', '[]'],
  ['nuisance', 'series/states.js', 'markEdges', 'undefined'],
  ['nuisance', 'series/doubts.js', 'untoldDiscounts', 'new Map()'],
  ['nuisance', 'series/seenLess.js', 'fewerSeen', 'undefined'],
  ['nuisance', 'series/fit.js', 'mixtureOf', '0'],
  ['nuisance', 'causes/bookedLate.js', 'bookedPartsOf', 'undefined'],
  ['account', 'account/movedModels.js', 'findMovedUse', '[]'],
  ['account', 'account/suspectUse.js', 'findSuspectUse', '[...findings, ...explained]'],
];

const withoutFunction = ([kind, file, name, returns]: (typeof FUNCTIONS)[number]): Rule => ({
  kind,
  name,
  edit: {
    file: `${ENGINE}/${file}`,
    find: `(function ${name}\\(.*\\) \\{)$`,
    replace: `$1 if (true) return ${returns};`,
  },
});

const withoutGate = (gate: string): Rule => ({
  kind: 'gate',
  name: gate,
  edit: {
    file: `${ENGINE}/series/gates.js`,
    find: '!holds\\(gate\\)',
    replace: `gate !== '${gate}' && !holds(gate)`,
  },
});

/** Fitted by another command, or shares of a price list. */
const NO_CONSTANTS: ReadonlySet<string> = new Set(['LAPSE', 'CACHE_SHARES']);

/** Every number of the calibration, 25 % smaller and larger; shares above a half by their distance from 1. */
export function numbers(): Rule[] {
  const names = [...textOf('calibration.js').matchAll(/^export const ([A-Z]\w*) = /gm)].map(
    ([, name = '']) => name,
  );
  return names
    .filter((name) => !NO_CONSTANTS.has(name))
    .flatMap((name) =>
      [3, 5].map(
        (quarters): Rule => ({
          kind: 'number',
          name: `${name} × ${quarters / 4}`,
          edit: {
            file: `${ENGINE}/calibration.js`,
            find: `^export const ${name} = (.*);$`,
            replace: `export const ${name} = (${scaled})($1, ${quarters});`,
          },
        }),
      ),
    );
}

/** In the text of the built file: integers stay integers, rounded away from where they were. */
const scaled = `function scale(value, quarters) {
  if (Array.isArray(value)) return value.map((one) => scale(one, quarters));
  if (typeof value === 'object')
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, scale(one, quarters)]));
  if (typeof value === 'bigint') return quarters > 4 ? (value * 5n + 3n) / 4n : (value * 3n) / 4n;
  if (value > 0.5 && value < 1) return 1 - ((1 - value) * (8 - quarters)) / 4;
  return (value * quarters) / 4;
}`;
