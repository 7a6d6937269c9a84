import type { z } from 'zod';
import { listProviderKeys } from '../../../db/billing/providerKeys.js';
import { dayOf, exclusiveEnd, lastDays } from '../../../domain/period.js';
import { listSuspectKeys, putProviderKeys } from '../../../usecases/billing/providerKeys.js';
import { endpointGroup } from '../../endpoint.js';
import { providerFilter, windowOf } from '../../query.js';
import {
  keysOfBody,
  listProviderKeysQuery,
  listProviderKeysResponse,
  presentProviderKey,
  presentProviderKeys,
  putProviderKeysBody,
  putProviderKeysResponse,
} from './wire.js';

const PROVIDER_KEYS_PATH = '/api/v1/provider-keys';
const SUSPECTS_MAX = 200;
/** Days of bills that are searched by default. */
const SUSPECT_DAYS = 90;

const routes = endpointGroup({
  tag: 'Billing',
  access: {
    read: { scope: 'billing:read', workspace: 'refused' },
    write: { scope: 'billing:write', workspace: 'refused' },
  },
});

routes.get(PROVIDER_KEYS_PATH, {
  operationId: 'listProviderKeys',
  summary: 'The organization’s keys at the providers, and unknown keys on bills',
  query: listProviderKeysQuery,
  responses: { 200: { description: 'The keys by provider and id', schema: listProviderKeysResponse } },
  problems: ['invalid_range'],
  async handle({ query, orgDb }, deps) {
    const provider = providerFilter(query.provider);
    const page = { limit: query.limit + 1, offset: query.offset };
    const window = {
      provider: provider ?? null,
      ...suspectDays(query, deps.nowMicros()),
      limit: SUSPECTS_MAX,
    };
    const found = await listProviderKeys(orgDb, { provider }, page);
    return { status: 200, body: presentProviderKeys(found, query, await listSuspectKeys(orgDb, window)) };
  },
});

/** The searched days, half-open. Error: invalid_range. */
function suspectDays({ since, until }: z.output<typeof listProviderKeysQuery>, nowMicros: bigint) {
  windowOf(since, until, ['since', 'until']);
  const { fromDay, toDay } = lastDays(SUSPECT_DAYS, until ? exclusiveEnd(until) - 1n : nowMicros);
  return { fromDay: since ? dayOf(since.micros) : fromDay, toDay };
}

routes.put(PROVIDER_KEYS_PATH, {
  operationId: 'putProviderKeys',
  summary: 'Enter or change keys',
  description:
    'Each item replaces the entry with its provider and provider_key_id, or adds one; other entries stay, so send a key that is no longer used with status revoked. The same request again changes nothing. Never send the key itself, only the provider’s id of it.',
  body: putProviderKeysBody,
  responses: {
    200: { description: 'The entries of the request as stored', schema: putProviderKeysResponse },
  },
  problems: ['invalid_body', 'too_many_items'],
  async handle({ body, orgDb, caller, requestId }) {
    const stored = await putProviderKeys(orgDb, keysOfBody(body), { caller, requestId });
    return { status: 200, body: { items: stored.map(presentProviderKey), count: stored.length } };
  },
});

export const providerKeyEndpoints = routes.endpoints;
