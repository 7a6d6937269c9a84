/** A small provider's bills, with the corners that real ones have. */
import type { BucketResults } from '../../../../lab/bills/pages.js';
import type { ProviderTruth } from '../../../fakes/billing/truth.js';

export const DAY_SECONDS = 86_400;
export const HOUR_SECONDS = 3_600;
/** 2026-09-01: the first day of the bills here. */
export const FIRST_SECONDS = Date.UTC(2026, 8, 1) / 1_000;
/** Noon of the day after the last billed one. */
export const DAYS = 40;
export const NOW_SECONDS = FIRST_SECONDS + DAYS * DAY_SECONDS + 12 * HOUR_SECONDS;
export const NOW_MICROS = BigInt(NOW_SECONDS) * 1_000_000n;

const byDay = (results: (day: number) => object[]): BucketResults[] =>
  Array.from({ length: DAYS }, (_, day) => ({
    startSeconds: FIRST_SECONDS + day * DAY_SECONDS,
    endSeconds: FIRST_SECONDS + (day + 1) * DAY_SECONDS,
    results: results(day),
  }));

/** Two hours of each day have usage. */
const byHour = (results: (day: number, hour: number) => object[]): BucketResults[] =>
  Array.from({ length: DAYS * 2 }, (_, at) => {
    const [day, hour] = [Math.floor(at / 2), at % 2 === 0 ? 3 : 17];
    const startSeconds = FIRST_SECONDS + day * DAY_SECONDS + hour * HOUR_SECONDS;
    return { startSeconds, endSeconds: startSeconds + HOUR_SECONDS, results: results(day, hour) };
  });

const PROJECTS = ['proj_shop', 'proj_chat'];
const keyOf = (project: string) => `key_${project.slice(5)}`;

export const OPENAI_ACCOUNT = 'org-loopback';

export function openaiTruth(): ProviderTruth {
  const cost = (value: string, line_item: string, project_id: string | null, quantity?: number) => ({
    object: 'organization.costs.result',
    amount: { value: { $number: value }, currency: 'usd' },
    line_item,
    project_id,
    api_key_id: project_id === null ? null : keyOf(project_id),
    organization_id: OPENAI_ACCOUNT,
    ...(quantity === undefined ? {} : { quantity, quantity_unit: 'tokens' }),
  });
  const usage = (name: string, project: string, counts: object) => ({
    object: `organization.usage.${name}.result`,
    ...counts,
    project_id: project,
    user_id: 'user-1',
    api_key_id: keyOf(project),
  });
  return {
    accountId: OPENAI_ACCOUNT,
    name: 'loopback',
    reports: {
      costs: byDay((day) => [
        ...PROJECTS.map((project) =>
          cost(
            `0.${String(day + 1).padStart(2, '0')}0000000001`,
            'gpt-4o-2024-08-06, input',
            project,
            1_000 + day,
          ),
        ),
        cost('1e-7', 'gpt-4o-2024-08-06, output', 'proj_shop', 1),
        cost('12345678.123456789012', 'web search tool calls', 'proj_chat'),
        ...(day === 5 ? [cost('-25.00', 'Promotional credit', null)] : []),
      ]),
      completions: byHour((day, hour) =>
        PROJECTS.map((project) => ({
          ...usage('completions', project, {
            input_tokens: 1_000 + day,
            input_cached_tokens: 300,
            input_cache_write_tokens: 0,
            input_uncached_tokens: 700 + day,
            output_tokens: 50,
            num_model_requests: 3,
          }),
          model: 'gpt-4o-2024-08-06',
          batch: hour === 3,
          service_tier: 'default',
        })),
      ),
      embeddings: byHour((day) => [
        {
          ...usage('embeddings', 'proj_shop', { input_tokens: day, num_model_requests: 1 }),
          model: 'text-embedding-3-small',
        },
      ]),
      web_search_calls: byHour(() => [
        {
          ...usage('web_searches', 'proj_chat', { num_requests: 4, num_model_requests: 2 }),
          model: 'gpt-4o-2024-08-06',
          context_level: 'low',
        },
      ]),
      file_search_calls: byHour(() => [usage('file_searches', 'proj_chat', { num_requests: 2 })]),
      vector_stores: byHour(() => [
        {
          object: 'organization.usage.vector_stores.result',
          usage_bytes: { $number: '9007199254740993' },
          project_id: 'proj_chat',
        },
      ]),
    },
  };
}

export const ANTHROPIC_ACCOUNT = '12345678-1234-5678-1234-567812345678';
/** Null is the default workspace. */
const WORKSPACES = ['wrkspc_a', null];

export function anthropicTruth(): ProviderTruth {
  const cost = (amount: string, token_type: string, workspace_id: string | null) => ({
    amount,
    currency: 'USD',
    cost_type: 'tokens',
    description: `Claude Opus 5 Usage - ${token_type}`,
    model: 'claude-opus-5',
    token_type,
    service_tier: 'standard',
    context_window: '0-200k',
    inference_geo: 'global',
    workspace_id,
  });
  return {
    accountId: ANTHROPIC_ACCOUNT,
    name: 'Loopback, Inc.',
    reports: {
      cost_report: byDay((day) => [
        ...WORKSPACES.map((workspace) => cost(`${day}.78912`, 'uncached_input_tokens', workspace)),
        cost('0.000001', 'output_tokens', 'wrkspc_a'),
        {
          ...cost('50.5', '', null),
          cost_type: 'web_search',
          description: 'Web Search Usage',
          model: null,
          token_type: null,
          service_tier: null,
          context_window: null,
          inference_geo: null,
        },
      ]),
      messages: byHour((day, hour) =>
        WORKSPACES.map((workspace_id) => ({
          uncached_input_tokens: 100 + day,
          cache_creation: { ephemeral_1h_input_tokens: 10, ephemeral_5m_input_tokens: 5 },
          cache_read_input_tokens: 20,
          output_tokens: 30,
          server_tool_use: { web_search_requests: hour === 3 ? 1 : 0 },
          // Null: the Workbench.
          api_key_id: hour === 3 ? null : 'apikey_1',
          workspace_id,
          model: 'claude-opus-5',
          service_tier: hour === 3 ? 'priority' : 'standard',
          context_window: '0-200k',
          inference_geo: 'not_available',
          account_id: 'user_1',
          service_account_id: null,
        })),
      ),
    },
  };
}
