import fc from 'fast-check';
import type { AnsweredUsage, CaseCall, ServedRule } from './ruleCases.js';

/** Random rules and calls, on which all implementations of the rules must agree. */

const oneOf = <T>(...values: T[]) => fc.constantFrom(...values);
const label = oneOf<string | null>(null, 'a', 'b');
const scope = fc.record({ team_id: label, feature: label, model: oneOf<string | null>(null, null, 'large') });
const mode = oneOf<'block' | 'observe'>('block', 'block', 'observe');

const body = fc.oneof(
  fc.record({ type: fc.constant('token_ceiling'), config: fc.record({ max_tokens: oneOf(109, 110, 500) }) }),
  fc.record({
    type: fc.constant('session_budget_usd'),
    config: fc.record({ budget_usd: oneOf(0.00045, 0.001, 0.000001, 0.002) }),
  }),
  fc.record({
    type: fc.constant('duplicate_window_seconds'),
    config: fc.record({ window_seconds: oneOf(1, 5, 60) }),
  }),
  fc.record({
    type: fc.constant('max_tool_calls'),
    config: fc.record({ max_tool_calls: oneOf(0, 1, 3) }),
  }),
);
/** Downgrades lead to cheaper models, since the replay counts no negative savings. */
const downgrade = fc.record({
  type: fc.constant('model_downgrade'),
  config: fc.record({ to_model: oneOf('small', 'tiny') }),
});
export const randomRules: fc.Arbitrary<ServedRule[]> = fc
  .array(
    fc.oneof(
      { weight: 4, arbitrary: fc.tuple(body, scope, mode) },
      {
        weight: 1,
        arbitrary: fc.tuple(
          downgrade,
          scope.map((one) => ({ ...one, model: 'large' })),
          mode,
        ),
      },
    ),
    { maxLength: 6 },
  )
  .map((drawn) =>
    drawn.map(([one, within, how], index) => ({
      id: `r${index + 1}`,
      name: null,
      mode: how,
      scope: within,
      ...one,
    })),
  );

const usage: fc.Arbitrary<AnsweredUsage | null> = oneOf(
  null,
  { input_tokens: 100, output_tokens: 10, cache_read: 0, cache_creation: 0 },
  { input_tokens: 1, output_tokens: 0, cache_read: 0, cache_creation: 0 },
  { input_tokens: 40, output_tokens: 9, cache_read: 60, cache_creation: 7 },
);
/** Calls with so few sessions, prompts and times that they often coincide. */
export const randomCalls: fc.Arbitrary<CaseCall[]> = fc
  .array(
    fc.record({
      at_ms: oneOf(0, 1, 999, 1_000, 1_001, 5_000, 5_001, 60_000, 60_001, 90_000),
      biller: oneOf('openai', 'openai', 'unknown'),
      model: oneOf('large', 'large', 'small', 'own', 'fine'),
      team_id: label,
      feature: label,
      session_id: oneOf(null, 's', 's', 't'),
      prompts: oneOf(null, [], ['hello'], ['hello', 'you']),
      input_tokens: oneOf(null, 99, 100, 100, 101),
      max_output_tokens: oneOf(null, 10, 11),
      answer: fc.record({
        status: oneOf<'ok' | 'error' | 'cancelled'>('ok', 'ok', 'ok', 'error', 'cancelled'),
        stop_reason: oneOf('stop', 'tool_use', 'tool_calls', 'function_call', 'unknown'),
        usage,
      }),
    }),
    { maxLength: 40 },
  )
  .map((drawn) => [...drawn].sort((left, right) => left.at_ms - right.at_ms));
