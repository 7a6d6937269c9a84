import { randomUUID } from 'node:crypto';
import { anEvent } from '../api/support/requests.js';
import type { PlainCall, PlainRule } from './plainReplay.js';

const USD = 1_000_000_000_000n;
const DAY_MS = 86_400_000;

/** Dollars per million tokens: input, output, cached input. As the providers list them; the last model is unlisted. */
const RATES: Record<string, readonly [provider: string, input: bigint, output: bigint, cached: bigint]> = {
  'gpt-4o': ['openai', 2_500_000n, 10_000_000n, 1_250_000n],
  'gpt-4o-mini': ['openai', 150_000n, 600_000n, 75_000n],
  'claude-sonnet-4-5': ['anthropic', 3_000_000n, 15_000_000n, 300_000n],
  'claude-haiku-4-5': ['anthropic', 1_000_000n, 5_000_000n, 100_000n],
};
/** Requests with more input than this cost other rates at Anthropic's Sonnet. */
const LONG_INPUT = 200_000;
const LONG_RATES: typeof RATES = {
  'claude-sonnet-4-5': ['anthropic', 6_000_000n, 22_500_000n, 600_000n],
};
const UNPRICED = 'in-house-7b';

/** Numbers from 0 to below `end`, the same for the same seed. */
function drawing(seed: number): (end: number) => number {
  let state = seed;
  return (end) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * end);
  };
}

/** The cost of a call of these tokens, in pico-dollars; null: unknown. */
function costOf(model: string, tokens: { input: number; output: number; cached: number }): bigint | null {
  const isLong = tokens.input + tokens.cached > LONG_INPUT;
  const rates = (isLong ? LONG_RATES[model] : undefined) ?? RATES[model];
  if (!rates) return null;
  // A dollar for a million tokens is a million pico-dollars for each.
  const [, input, output, cached] = rates;
  return BigInt(tokens.input) * input + BigInt(tokens.output) * output + BigInt(tokens.cached) * cached;
}

/** The sent reports, and their calls, without superseded reports and blocked calls. */
export interface SeededMonth {
  events: Record<string, unknown>[];
  calls: PlainCall[];
}

/**
 * A month of calls that affect every rule: long sessions, repeated prompts, loops of tools, large calls, unpriced
 * models, reported costs, calls reported twice, and calls that wrappers have blocked. No two begin at the same time.
 */
export function seedMonth(options: { seed: number; calls: number; nowMs: number }): SeededMonth {
  const draw = drawing(options.seed);
  const pick = <T>(...values: T[]): T => values[draw(values.length)] as T;
  const month: SeededMonth = { events: [], calls: [] };
  const step = (29 * DAY_MS) / options.calls;
  for (let index = 0; index < options.calls; index += 1) {
    // Some follow one another at once, so that prompts meet within a window.
    const atMs = Math.floor(options.nowMs - 29.5 * DAY_MS + index * step * (draw(3) === 0 ? 1 : 0.999));
    const model = pick('gpt-4o', 'gpt-4o', 'gpt-4o-mini', 'claude-sonnet-4-5', 'claude-haiku-4-5', UNPRICED);
    const provider = RATES[model]?.[0] ?? 'openai';
    const tokens = {
      input: pick(1_000, 2_500, 33_333, 400_000 + draw(1_000)),
      output: pick(0, 777, 4_000),
      cached: pick(0, 0, 10_001),
    };
    const team = pick(null, 'search', 'growth');
    const feature = pick(null, 'chat');
    const session = draw(8) === 0 ? null : `session-${draw(24)}`;
    const prompt = draw(4) === 0 ? null : `prompt ${draw(6)}`;
    const stop = pick<string | null>('stop', 'end_turn', 'tool_use', 'tool_calls', 'function_call', null);
    const status = pick('ok', 'ok', 'ok', 'ok', 'error', 'cancelled');
    const reported = draw(9) === 0 ? BigInt(1 + draw(2_000_000)) * (USD / 1_000_000n) : null;
    const responseId = `resp_${randomUUID()}`;
    const told = {
      provider,
      model,
      timestamp: new Date(atMs).toISOString(),
      response_id: responseId,
      input_tokens: tokens.input,
      output_tokens: tokens.output,
      ...(tokens.cached === 0 ? {} : { cache_read: tokens.cached }),
      ...(team === null ? {} : { team_id: team }),
      ...(feature === null ? {} : { feature }),
      ...(session === null ? {} : { session_id: session }),
      ...(prompt === null ? {} : { payload: { prompt } }),
      ...(stop === null ? {} : { stop_reason: stop }),
      status,
      ...(reported === null ? {} : { cost_usd: Number(reported) / Number(USD) }),
    };
    if (draw(12) === 0) {
      const blocked = { status: 'blocked', blocked_rule_id: 'rul_unknown', prevented_usd: 0.5 };
      const { cost_usd: _, ...rest } = told as Record<string, unknown>;
      month.events.push(anEvent({ ...rest, ...blocked }));
      continue;
    }
    month.events.push(anEvent(told));
    // A poorer report of the same call, which the first one supersedes.
    if (draw(10) === 0) {
      const {
        input_tokens: _,
        output_tokens: __,
        cache_read: ___,
        cost_usd: ____,
        ...poor
      } = told as Record<string, unknown>;
      const later = new Date(atMs + 7).toISOString();
      month.events.push({ ...poor, timestamp: later, request_id: `req-${randomUUID()}` });
    }
    month.calls.push({
      id: responseId,
      at: BigInt(atMs) * 1_000n,
      isOk: status === 'ok',
      biller: provider,
      model,
      team,
      feature,
      session,
      stop,
      inputTokens: tokens.input + tokens.cached,
      outputTokens: tokens.output,
      prompt,
      cost: reported ?? costOf(model, tokens),
      costAs: (other) => costOf(other, tokens),
    });
  }
  return month;
}

/** Rules as they are entered, each with the plain replay's form of it; in the order of evaluation. */
export const MONTH_RULES: { body: Record<string, unknown>; plain: Omit<PlainRule, 'id'> }[] = [
  {
    body: { type: 'duplicate_window_seconds', config: { window_seconds: 86_400 }, mode: 'observe' },
    plain: { type: 'duplicate_window_seconds', limit: 86_400 },
  },
  {
    body: { type: 'token_ceiling', config: { max_tokens: 401_000 }, scope: { team_id: 'search' } },
    plain: { type: 'token_ceiling', limit: 401_000, team: 'search' },
  },
  {
    body: { type: 'session_budget_usd', config: { budget_usd: '2.25' } },
    plain: { type: 'session_budget_usd', limit: (225n * USD) / 100n },
  },
  {
    body: { type: 'max_tool_calls', config: { max_tool_calls: 3 }, scope: { feature: 'chat' } },
    plain: { type: 'max_tool_calls', limit: 3, feature: 'chat' },
  },
  {
    body: {
      type: 'model_downgrade',
      config: { to_model: 'gpt-4o-mini' },
      scope: { model: 'gpt-4o', team_id: 'growth' },
    },
    plain: { type: 'model_downgrade', limit: 'gpt-4o-mini', model: 'gpt-4o', team: 'growth' },
  },
  {
    body: { type: 'model_downgrade', config: { to_model: 'nobody-lists-this' }, scope: { model: 'gpt-4o' } },
    plain: { type: 'model_downgrade', limit: 'nobody-lists-this', model: 'gpt-4o' },
  },
  {
    body: {
      type: 'model_downgrade',
      config: { to_model: 'claude-haiku-4-5' },
      scope: { model: 'claude-sonnet-4-5' },
    },
    plain: { type: 'model_downgrade', limit: 'claude-haiku-4-5', model: 'claude-sonnet-4-5' },
  },
];
