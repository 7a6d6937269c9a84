/**
 * Demo Labs' policies, whose violations appear in the alerts, and its enforcement rules, whose savings are
 * modeled, with the expected results, computed from the calls alone.
 */
import type { DemoCall } from './calls.js';
import { PREVIEW_MODEL, TRAFFIC } from './company.js';
import { isReported } from './events.js';
import { priceOf } from './prices.js';

/** The body of PUT /api/v1/policies/{policy_type}. */
export interface DemoPolicy {
  type: string;
  body: { config: object; enabled: true };
}

/** The body of POST /api/v1/enforcement-rules. */
export interface DemoRule {
  name: string;
  type: 'session_budget_usd' | 'model_downgrade';
  config: object;
  scope: { feature: string; model?: string };
  mode: 'observe';
}

const MODELS = [...new Set(TRAFFIC.flatMap(({ model }) => [priceOf(model).alias, model]))].sort();
const PICO_PER_CENT = 10_000_000_000n;
export const DEAR_CENTS = 220;
export const BUDGET_USD = 25;
const DRAFTS = { feature: 'content-drafts', model: 'gpt-5.6-terra' };
const DRAFTS_GO_TO = 'gpt-6-sol';

export const POLICIES: readonly DemoPolicy[] = [
  ['approved_models', { models: MODELS }],
  ['banned_patterns', { regexes: ['(?i)\\b\\w*(password|token)( is |=)\\S+'] }],
  [
    'key_environment_check',
    { prod_key_prefixes: ['key_Demo', 'apikey_01Demo'], allowed_envs: ['production'] },
  ],
  ['approval_required_threshold_cents', { threshold_cents: DEAR_CENTS }],
].map(([type, config]) => ({ type: type as string, body: { config: config as object, enabled: true } }));

/** All rules observe: no call is stopped, and only their savings are reported. */
export const RULES: readonly DemoRule[] = [
  {
    name: 'No agent spends more than 25 $ on one session',
    type: 'session_budget_usd',
    config: { budget_usd: BUDGET_USD },
    scope: { feature: 'code-review' },
    mode: 'observe',
  },
  {
    name: 'Drafts by gpt-6-sol',
    type: 'model_downgrade',
    config: { to_model: DRAFTS_GO_TO },
    scope: DRAFTS,
    mode: 'observe',
  },
];

/** The expected violations and savings; independent of the demo's last day. */
export interface WantedFindings {
  /** Calls that request an unapproved model. */
  unapproved: { model: string; requestIds: string[] };
  /** In sessions that exceeded their budget: the calls after that. */
  budget: { calls: number; pico: bigint };
}

/** Results that depend on the number of calls and so on the weekends. */
export interface TrafficFindings {
  dear: { calls: number };
  /** Drafts with the cheaper model: calls and savings. */
  drafts: { calls: number; pico: bigint };
}

export function wantedFindingsOf(calls: readonly DemoCall[]): WantedFindings {
  const unapproved = calls.filter(({ askedModel }) => askedModel === PREVIEW_MODEL);
  return {
    unapproved: { model: PREVIEW_MODEL, requestIds: unapproved.map(({ id }) => id).sort() },
    budget: budgetFindings(calls.filter(({ feature }) => feature === 'code-review')),
  };
}

function budgetFindings(calls: readonly DemoCall[]): WantedFindings['budget'] {
  const spent = new Map<string, bigint>();
  const budget = BigInt(BUDGET_USD) * 100n * PICO_PER_CENT;
  const found = { calls: 0, pico: 0n };
  for (const call of calls.filter(isReported).sort((a, b) => a.startSeconds - b.startSeconds)) {
    const before = spent.get(call.sessionId) ?? 0n;
    if (before >= budget) {
      found.calls += 1;
      found.pico += call.pico;
    } else spent.set(call.sessionId, before + call.pico);
  }
  return found;
}

export function trafficFindingsOf(calls: readonly DemoCall[]): TrafficFindings {
  const reported = calls.filter(isReported);
  const drafts = reported.filter(
    ({ feature, askedModel }) => feature === DRAFTS.feature && askedModel === DRAFTS.model,
  );
  const [own, other] = [DRAFTS.model, DRAFTS_GO_TO].map((model) => priceOf(model).standard.output ?? 0n);
  return {
    dear: { calls: reported.filter(({ pico }) => pico >= BigInt(DEAR_CENTS) * PICO_PER_CENT).length },
    // The two models differ only in the price of output.
    drafts: {
      calls: drafts.length,
      pico: drafts.reduce(
        (sum, { tokens }) => sum + BigInt(tokens.output) * ((own ?? 0n) - (other ?? 0n)),
        0n,
      ),
    },
  };
}
