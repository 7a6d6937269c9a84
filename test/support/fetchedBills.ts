/** Bills of 92 days of loopback providers, with amounts that the tests can compute. */

import type { BucketResults } from '../../lab/bills/pages.js';
import type { SyncPace } from '../../usecases/billing/fetchChunk.js';
import type { ProviderTruth } from '../fakes/billing/truth.js';

export const DAY_SECONDS = 86_400;
const HOUR_SECONDS = 3_600;
/** Days before today that have a bill; today has one too. */
const DAYS = 92;
/** Days before today that a test's connection fetches: three parts of each report suffice for most rules. */
export const BACKFILL_DAYS = 20;
/** Hours of a day with usage, UTC. Today's have begun at whatever hour a test runs. */
const USED_HOURS = [2, 14];
const USED_HOURS_TODAY = [0];
export const ADMIN_KEYS = {
  openai: 'sk-admin-Planted0123456789Secret',
  anthropic: 'sk-ant-admin01-Planted0123456789Secret',
} as const;
export type FetchedProvider = keyof typeof ADMIN_KEYS;

export const todaySeconds = () => Math.floor(Date.now() / 1_000 / DAY_SECONDS) * DAY_SECONDS;
export const dayText = (seconds: number) => new Date(seconds * 1_000).toISOString().slice(0, 10);
/** UTC day, `days` before today. */
export const daysAgo = (days: number) => dayText(todaySeconds() - days * DAY_SECONDS);

/** Cost of a project or workspace on a day, in millionths of a dollar. */
export function microUsd(startSeconds: number, part: string): number {
  const day = startSeconds / DAY_SECONDS;
  return 1_000_000 + (day % 97) * 3_701 + (part.endsWith('a') ? 0 : 500_003);
}

const days = () => Array.from({ length: DAYS + 1 }, (_, at) => todaySeconds() - (DAYS - at) * DAY_SECONDS);
const decimal = (scaled: number, digits: number) => (scaled / 10 ** digits).toFixed(digits);

function byDay(results: (startSeconds: number) => object[]): BucketResults[] {
  return days().map((startSeconds) => ({
    startSeconds,
    endSeconds: startSeconds + DAY_SECONDS,
    results: results(startSeconds),
  }));
}

function byHour(results: (startSeconds: number) => object[]): BucketResults[] {
  return days().flatMap((day) =>
    (day === todaySeconds() ? USED_HOURS_TODAY : USED_HOURS).map((hour) => {
      const startSeconds = day + hour * HOUR_SECONDS;
      return { startSeconds, endSeconds: startSeconds + HOUR_SECONDS, results: results(startSeconds) };
    }),
  );
}

export const PARTS = { openai: ['proj_a', 'proj_b'], anthropic: ['wrkspc_a', 'wrkspc_b'] } as const;

export function openaiResult(account: string, startSeconds: number, part: string, extraMicroUsd = 0): object {
  return {
    object: 'organization.costs.result',
    amount: { value: { $number: decimal(microUsd(startSeconds, part) + extraMicroUsd, 6) }, currency: 'usd' },
    line_item: 'gpt-4o-2024-08-06, input',
    project_id: part,
    api_key_id: 'key_1',
    organization_id: account,
    quantity: 1_000,
    quantity_unit: 'tokens',
  };
}

export function openaiTruth(account: string): ProviderTruth {
  return {
    accountId: account,
    reports: {
      costs: byDay((start) => PARTS.openai.map((part) => openaiResult(account, start, part))),
      completions: byHour((start) =>
        PARTS.openai.map((part) => ({
          object: 'organization.usage.completions.result',
          input_tokens: 500 + (start % 7),
          input_cached_tokens: 0,
          output_tokens: 20,
          num_model_requests: 2,
          project_id: part,
          api_key_id: 'key_1',
          model: 'gpt-4o-2024-08-06',
          batch: false,
          service_tier: 'default',
        })),
      ),
    },
  };
}

export function anthropicTruth(account: string): ProviderTruth {
  return {
    accountId: account,
    name: 'Loopback',
    reports: {
      cost_report: byDay((start) =>
        PARTS.anthropic.map((part) => ({
          amount: decimal(microUsd(start, part), 4),
          currency: 'USD',
          cost_type: 'tokens',
          description: 'Claude Opus 5 Usage - Input Tokens',
          model: 'claude-opus-5',
          token_type: 'uncached_input_tokens',
          service_tier: 'standard',
          context_window: '0-200k',
          inference_geo: 'global',
          workspace_id: part,
        })),
      ),
      messages: byHour(() =>
        PARTS.anthropic.map((part) => ({
          uncached_input_tokens: 700,
          cache_creation: { ephemeral_1h_input_tokens: 0, ephemeral_5m_input_tokens: 0 },
          cache_read_input_tokens: 0,
          output_tokens: 30,
          server_tool_use: { web_search_requests: 0 },
          api_key_id: 'apikey_1',
          model: 'claude-opus-5',
          service_tier: 'standard',
          context_window: '0-200k',
          inference_geo: 'global',
          workspace_id: part,
        })),
      ),
    },
  };
}

/** Cost of all parts, or of one, by day: pico-dollars. */
export function expectedDays(
  provider: FetchedProvider,
  fromDay: string,
  parts: readonly string[] = PARTS[provider],
): Record<string, bigint> {
  const sums: Record<string, bigint> = {};
  for (const start of days()) {
    const day = dayText(start);
    if (day >= fromDay)
      sums[day] = parts.reduce((sum, part) => sum + BigInt(microUsd(start, part)) * 1_000_000n, 0n);
  }
  return sums;
}

export const FAST: SyncPace = {
  firstWaitMs: 40,
  longestWaitMs: 400,
  giveUpAfterMs: 60_000,
};

export const CONNECTIONS = '/api/v1/billing-connections';

/** A body that connects a provider. */
export const aConnection = (provider: FetchedProvider, more: object = {}) => ({
  provider,
  name: `our ${provider}`,
  credentials: { admin_key: ADMIN_KEYS[provider] },
  ...more,
});
