import {
  findProviderKeys,
  readSuspectKeys,
  type StoredProviderKey,
  upsertProviderKeys,
} from '../../db/billing/providerKeys.js';
import type { OrgDb } from '../../db/orgDb.js';
import type { ProviderKey, SuspectKey } from '../../domain/billing/providerKeys.js';
import { DomainError } from '../../domain/errors.js';
import { type RequestAuthor, recordAction } from '../access/recordAction.js';

/** Most provider keys of one organization. */
const KEYS_MAX = 10_000;

/** Stores or updates provider keys; returns them as stored. Error: too_many_items. */
export async function putProviderKeys(
  orgDb: OrgDb,
  keys: readonly ProviderKey[],
  author: RequestAuthor,
  keysMax = KEYS_MAX,
): Promise<StoredProviderKey[]> {
  if (keys.length === 0) return [];
  await orgDb.transaction(async (inside) => {
    const { changed, count } = await upsertProviderKeys(inside, keys, author.caller.keyId);
    if (count > keysMax)
      throw new DomainError(
        'too_many_items',
        `an organization can have ${keysMax} provider keys; nothing was stored`,
      );
    if (changed.length === 0) return;
    await recordAction(inside, author, 'provider_key.changed', null, {
      provider_keys: changed.map((key) => `${key.provider} ${key.providerKeyId}`),
    });
  });
  return findProviderKeys(orgDb, keys);
}

/**
 * Billed keys that are not listed, and keys that were billed after their revocation (`readSuspectKeys`), in one
 * snapshot.
 */
export function listSuspectKeys(
  orgDb: OrgDb,
  window: { provider: string | null; fromDay: string; toDay: string; limit: number },
): Promise<{ keys: SuspectKey[]; count: number }> {
  return orgDb.transaction((inside) => readSuspectKeys(inside, window), 'repeatable read');
}
