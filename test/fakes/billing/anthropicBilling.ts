/**
 * A loopback provider that answers as Anthropic's cost report and its usage report of messages do, with the parameters,
 * limits and groups of the Admin API reference.
 */

import { rfc3339 } from '../../../lab/bills/pages.js';
import type { ProviderError, ReportRules } from './reportQuery.js';
import {
  type BillingFake,
  type BillingFakeOptions,
  type BillingProtocol,
  startBillingFake,
} from './reportServer.js';

/** Starts the provider; connectors take `origin` as ANTHROPIC_ADMIN_BASE_URL. */
export function startAnthropicBilling(options: BillingFakeOptions): Promise<BillingFake> {
  return startBillingFake(options, PROTOCOL);
}

const REPORTS: Record<string, ReportRules> = {
  cost_report: {
    path: '/v1/organizations/cost_report',
    widths: { '1d': { default: 7, max: 31 } },
    dimensions: [
      { field: 'workspace_id' },
      {
        field: 'description',
        dependents: ['cost_type', 'model', 'token_type', 'service_tier', 'context_window', 'inference_geo'],
      },
    ],
    filters: {},
  },
  messages: {
    path: '/v1/organizations/usage_report/messages',
    widths: { '1d': { default: 7, max: 31 }, '1h': { default: 24, max: 168 } },
    dimensions: [
      'api_key_id',
      'workspace_id',
      'model',
      'service_tier',
      'context_window',
      'inference_geo',
      'account_id',
      'service_account_id',
    ].map((field) => ({ field })),
    filters: {
      api_key_ids: 'api_key_id',
      workspace_ids: 'workspace_id',
      models: 'model',
      service_tiers: 'service_tier',
      context_window: 'context_window',
      inference_geos: 'inference_geo',
      account_ids: 'account_id',
      service_account_ids: 'service_account_id',
    },
  },
};

const ERROR_TYPES: Record<ProviderError['type'], string> = {
  authentication: 'authentication_error',
  permission: 'permission_error',
  invalid_request: 'invalid_request_error',
  not_found: 'not_found_error',
  rate_limit: 'rate_limit_error',
  server: 'api_error',
};

const RFC3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$/;

const PROTOCOL: BillingProtocol = {
  reports: REPORTS,
  startParameter: 'starting_at',
  endParameter: 'ending_at',
  tokenPrefix: 'page_',
  readTime: (text) => (RFC3339.test(text) ? Date.parse(text) / 1_000 : undefined),
  denied: {
    status: 403,
    type: 'permission',
    message: 'Your account does not have permission to access this resource.',
  },
  authenticate(headers, keys) {
    const key = headers['x-api-key'];
    if (typeof key !== 'string' || !keys.includes(key)) {
      const message = key === undefined ? 'x-api-key header is required' : 'invalid x-api-key';
      return { status: 401, type: 'authentication', message };
    }
    if (headers['anthropic-version'] === undefined) {
      return { status: 400, type: 'invalid_request', message: 'anthropic-version: header is required' };
    }
    return undefined;
  },
  errorBody: ({ type, message }, requestId) => ({
    type: 'error',
    error: { type: ERROR_TYPES[type], message },
    request_id: requestId,
  }),
  headers: (truth, requestId) => ({
    'request-id': requestId,
    'anthropic-organization-id': truth.accountId,
  }),
  page: (buckets, nextPage) => ({
    data: buckets.map(({ startSeconds, endSeconds, results }) => ({
      starting_at: rfc3339(startSeconds),
      ending_at: rfc3339(endSeconds),
      results,
    })),
    has_more: nextPage !== null,
    next_page: nextPage,
  }),
  extra: (path, truth) =>
    path === '/v1/organizations/me'
      ? { id: truth.accountId, type: 'organization', name: truth.name ?? 'Loopback' }
      : undefined,
};
