import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import type { Json } from '../../domain/events/event.js';
import { compilePolicies, judgeCall } from '../../domain/policies/judge.js';
import { buildTables, patternId, patternsVersion } from '../../domain/policies/patternAutomata.js';
import { anyText } from '../domain/policies/support/plainPattern.js';

/** The table of pattern cases that the API and both wrappers share, and random requests. */

interface PatternCases {
  requests: { name: string; body: Json; prompts: string[] }[];
  lists: {
    name: string;
    regexes: string[];
    served: Record<string, unknown>;
    searches: { text: string; pattern_index: number | null; match_offset: number | null }[];
  }[];
}

export const PATTERN_CASES: PatternCases = JSON.parse(
  readFileSync(new URL('../../sdk/patternCases.json', import.meta.url), 'utf8'),
);

/** The tables as the service serves them. */
export function servedOf(regexes: readonly string[]): Record<string, unknown> {
  const work = buildTables(regexes, []);
  for (;;) {
    const turn = work.next();
    if (!turn.done) continue;
    const { automata, notEvaluated } = turn.value;
    return {
      version: patternsVersion(regexes, []),
      poll_seconds: 60,
      patterns: regexes.flatMap((regex, index) =>
        notEvaluated.includes(index) ? [] : [{ index, id: patternId(regex) }],
      ),
      not_evaluated: notEvaluated,
      automata: automata.map(({ beginsFirst, ...rest }) => ({ ...rest, begins_first: beginsFirst })),
    };
  }
}

/** The details of the API's alert for a call whose prompts it sees. */
export function judgeByApi(regexes: readonly string[], prompts: readonly string[]): object | undefined {
  const policies = compilePolicies([
    { id: 1, type: 'banned_patterns', config: { regexes }, enabled: true, skipped: [] },
  ]);
  const call = { model: 'm', environment: null, keyPrefix: null, costPico: null, prompts: () => prompts };
  return judgeCall(policies, call)[0]?.details;
}

const FIELDS =
  'messages input prompt contents parts content text message texts inputs inputText toolResult functionResponse output value json image source'.split(
    ' ',
  );

/** Requests of many forms, known and unknown. */
export const { map: anyBody } = fc.letrec<{ value: Json; map: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    anyText(8),
    fc.constantFrom('{"role":"user","content":"ab"}', '["a","b"]', '{"x":1}', '[', ' {"text":"a b"}'),
    fc.constantFrom(null, 7, true),
    fc.array(tie('value'), { maxLength: 3 }),
    tie('map'),
  ),
  map: fc.dictionary(
    fc.constantFrom(...FIELDS, 'role', 'type', 'other'),
    fc.oneof(
      tie('value'),
      fc.constantFrom('system', 'user', 'Developer', 'text', 'image', 'message', 'tool_result', 'json'),
    ),
    { maxKeys: 4 },
  ) as fc.Arbitrary<Json>,
}));
