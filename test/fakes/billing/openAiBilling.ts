/**
 * A loopback provider that answers as OpenAI's costs and usage reports of an organization do. Parameters, limits,
 * groups and result types as in the API reference (types of the official client 6.49.0); keys without the permission
 * are answered as organizations have seen it.
 */
import type { Dimension } from './aggregate.js';
import type { ProviderError, ReportRules } from './reportQuery.js';
import {
  type BillingFake,
  type BillingFakeOptions,
  type BillingProtocol,
  startBillingFake,
} from './reportServer.js';

/** Starts the provider; connectors take `origin` as OPENAI_ADMIN_BASE_URL. */
export function startOpenAiBilling(options: BillingFakeOptions): Promise<BillingFake> {
  return startBillingFake(options, PROTOCOL);
}

const fields = (...names: string[]): Dimension[] => names.map((field) => ({ field }));
const WIDTHS: ReportRules['widths'] = { '1d': { default: 7, max: 31 }, '1h': { default: 24, max: 168 } };
const BY_PROJECT = { project_ids: 'project_id' };
const BY_KEY = { ...BY_PROJECT, user_ids: 'user_id', api_key_ids: 'api_key_id' };
const BY_MODEL = { ...BY_KEY, models: 'model' };

function usage(report: string, dimensions: Dimension[], filters: Record<string, string>): ReportRules {
  return { path: `/v1/organization/usage/${report}`, widths: WIDTHS, dimensions, filters };
}

const OF_MODEL = ['project_id', 'user_id', 'api_key_id', 'model'];

const REPORTS: Record<string, ReportRules> = {
  costs: {
    path: '/v1/organization/costs',
    widths: { '1d': { default: 7, max: 180 } },
    dimensions: [
      { field: 'project_id' },
      // The quantity is that of a line item.
      { field: 'line_item', dependents: ['quantity', 'quantity_unit'] },
      { field: 'api_key_id' },
    ],
    filters: { project_ids: 'project_id', api_key_ids: 'api_key_id' },
  },
  completions: usage('completions', fields(...OF_MODEL, 'batch', 'service_tier'), {
    ...BY_MODEL,
    batch: 'batch',
  }),
  embeddings: usage('embeddings', fields(...OF_MODEL), BY_MODEL),
  moderations: usage('moderations', fields(...OF_MODEL), BY_MODEL),
  images: usage('images', fields(...OF_MODEL, 'size', 'source'), {
    ...BY_MODEL,
    sizes: 'size',
    sources: 'source',
  }),
  audio_speeches: usage('audio_speeches', fields(...OF_MODEL), BY_MODEL),
  audio_transcriptions: usage('audio_transcriptions', fields(...OF_MODEL), BY_MODEL),
  web_search_calls: usage('web_search_calls', fields(...OF_MODEL, 'context_level'), {
    ...BY_MODEL,
    context_levels: 'context_level',
  }),
  file_search_calls: usage(
    'file_search_calls',
    fields('project_id', 'user_id', 'api_key_id', 'vector_store_id'),
    { ...BY_KEY, vector_store_ids: 'vector_store_id' },
  ),
  vector_stores: usage('vector_stores', fields('project_id'), BY_PROJECT),
  code_interpreter_sessions: usage('code_interpreter_sessions', fields('project_id'), BY_PROJECT),
};

/** Keys for inference are known to OpenAI but may not read usage. */
const INFERENCE_KEY = /^sk-(?:proj|svcacct)-/;
const MISSING_SCOPE =
  "You have insufficient permissions for this operation. Missing scopes: api.usage.read. Check that you have the correct role in your organization, and if you're using a restricted API key, that it has the necessary scopes.";
const DENIED: ProviderError = { status: 403, type: 'permission', message: MISSING_SCOPE };

const PROTOCOL: BillingProtocol = {
  reports: REPORTS,
  startParameter: 'start_time',
  endParameter: 'end_time',
  tokenPrefix: '',
  readTime: (text) => (/^\d{1,12}$/.test(text) ? Number(text) : undefined),
  denied: DENIED,
  authenticate(headers, keys) {
    const key = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1];
    if (key !== undefined && keys.includes(key)) return undefined;
    if (key !== undefined && INFERENCE_KEY.test(key)) return DENIED;
    const message =
      key === undefined
        ? "You didn't provide an API key."
        : // Like the real answer, this contains the ends of the key.
          `Incorrect API key provided: ${key.slice(0, 8)}***${key.slice(-4)}.`;
    return { status: 401, type: 'authentication', message };
  },
  errorBody: ({ status, type, message, param }) => ({
    error: {
      message,
      type: type === 'server' ? 'server_error' : type === 'rate_limit' ? 'requests' : 'invalid_request_error',
      param: param ?? null,
      code: status === 401 ? 'invalid_api_key' : status === 429 ? 'rate_limit_exceeded' : null,
    },
  }),
  headers: (truth, requestId) => ({
    'x-request-id': requestId,
    'openai-version': '2020-10-01',
    'openai-organization': truth.name ?? 'loopback',
  }),
  page: (buckets, nextPage) => ({
    object: 'page',
    data: buckets.map(({ startSeconds, endSeconds, results }) => ({
      object: 'bucket',
      start_time: startSeconds,
      end_time: endSeconds,
      results,
    })),
    has_more: nextPage !== null,
    next_page: nextPage,
  }),
  extra: () => undefined,
};
