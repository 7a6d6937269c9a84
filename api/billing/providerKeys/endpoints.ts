import {
  findProviderKeys,
  listProviderKeys,
  listSuspectKeys,
  upsertProviderKeys,
} from '../../../db/billing/providerKeys.js';
import { DomainError } from '../../../domain/errors.js';
import { dayOf, exclusiveEnd, lastDays } from '../../../domain/period.js';
import { recordAction } from '../../../usecases/access/recordAction.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
import { pageOf } from '../../paging.js';
import { providerFilter, windowOf } from '../../query.js';
import {
  keysOfBody,
  listProviderKeysQuery,
  listProviderKeysResponse,
  presentProviderKey,
  putProviderKeysBody,
  putProviderKeysResponse,
  wireOfSuspect,
} from './wire.js';

const PROVIDER_KEYS_PATH = '/api/v1/provider-keys';
/** Keys of one organization. */
const KEYS_MAX = 10_000;
const SUSPECTS_MAX = 200;
/** Days of bills that are looked through unless the caller says otherwise. */
const SUSPECT_DAYS = 90;

const listKeys = defineEndpoint({
  operationId: 'listProviderKeys',
  method: 'get',
  path: PROVIDER_KEYS_PATH,
  tag: 'Billing',
  summary: 'The organization’s keys at the providers, and billed keys that nobody knows',
  access: { scope: 'billing:read', workspace: 'refused' },
  query: listProviderKeysQuery,
  responses: { 200: { description: 'The keys by provider and id', schema: listProviderKeysResponse } },
  problems: ['invalid_range'],
  async handle({ query, orgDb }, deps) {
    windowOf(query.since, query.until, ['since', 'until']);
    const lastMicros = query.until ? exclusiveEnd(query.until) - 1n : deps.nowMicros();
    const { fromDay, toDay } = lastDays(SUSPECT_DAYS, lastMicros);
    const provider = providerFilter(query.provider);
    const found = await listProviderKeys(
      orgDb,
      { provider },
      { limit: query.limit + 1, offset: query.offset },
    );
    const suspects = await listSuspectKeys(orgDb, {
      provider: provider ?? null,
      fromDay: query.since ? dayOf(query.since.micros) : fromDay,
      toDay,
      limit: SUSPECTS_MAX,
    });
    const { shown, page } = pageOf(found, query);
    return {
      status: 200,
      body: {
        items: shown.map(presentProviderKey),
        ...page,
        unknown: suspects.keys.map(wireOfSuspect),
        unknown_count: suspects.count,
      },
    };
  },
});

const putKeys = defineEndpoint({
  operationId: 'putProviderKeys',
  method: 'put',
  path: PROVIDER_KEYS_PATH,
  tag: 'Billing',
  summary: 'Enter or change keys',
  description:
    'Each item takes the place of the entry with its provider and provider_key_id, or is a new one; entries that are not named stay, so a key that is no longer used is sent with status revoked. The same request again changes nothing. Never send the key itself, only the provider’s id of it.',
  access: { scope: 'billing:write', workspace: 'refused' },
  body: putProviderKeysBody,
  responses: {
    200: { description: 'The entries of the request as stored', schema: putProviderKeysResponse },
  },
  problems: ['invalid_body', 'too_many_items'],
  async handle({ body, orgDb, caller, requestId }) {
    const keys = keysOfBody(body);
    await orgDb.transaction(async (inside) => {
      const change = { changedBy: caller.keyId, keysMax: KEYS_MAX };
      const changed = await upsertProviderKeys(inside, keys, change);
      if (!changed)
        throw new DomainError(
          'too_many_items',
          `an organization can have ${KEYS_MAX} provider keys; nothing was stored`,
        );
      if (changed.length === 0) return;
      await recordAction(inside, { caller, requestId }, 'provider_key.changed', null, {
        provider_keys: changed.map((key) => `${key.provider} ${key.providerKeyId}`),
      });
    });
    const items = (await findProviderKeys(orgDb, keys)).map(presentProviderKey);
    return { status: 200, body: { items, count: items.length } };
  },
});

export const providerKeyEndpoints: readonly Endpoint[] = [listKeys, putKeys];
