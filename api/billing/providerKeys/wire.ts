import { z } from 'zod';
import type { StoredProviderKey } from '../../../db/billing/providerKeys.js';
import {
  PROVIDER_KEY_STATUSES,
  type ProviderKey,
  SUSPECT_KEY_REASONS,
  type SuspectKey,
} from '../../../domain/billing/providerKeys.js';
import { usdNumberOrNull } from '../../../domain/money.js';
import { isoFromMicros, isoOrNull } from '../../../domain/period.js';
import { findProvider, PROVIDERS } from '../../../domain/providers.js';
import { offsetParameters, pageFields, pageOf } from '../../paging.js';
import { filterParameter, instantParameter, momentField } from '../../query.js';

/** Most entries of one request. */
const ITEMS_MAX = 1_000;

const text = (max: number) =>
  z
    .string()
    .trim()
    .min(1, { error: 'must not be empty' })
    .max(max, { error: `must have at most ${max} characters` });

const time = momentField(
  'must be an ISO 8601 time or date',
  'ISO 8601 time or date, UTC when it names no offset',
);

const providerRule = `must be one of ${PROVIDERS.join(', ')}`;
const provider = z
  .string({ error: providerRule })
  .transform((word, context) => {
    const found = findProvider(word);
    if (found) return found;
    context.addIssue({ code: 'custom', message: providerRule });
    return z.NEVER;
  })
  .meta({ enum: [...PROVIDERS] });

const itemBody = z
  .strictObject({
    provider,
    provider_key_id: text(256).meta({
      description: 'The provider’s own id of the key; never the key itself',
    }),
    provider_account_id: text(256).nullable().default(null).meta({
      description:
        'The account that is billed for its use: calls that name the key and no account are compared under it',
    }),
    name: text(256),
    project: text(256).nullable().default(null),
    team_id: text(256).nullable().default(null),
    status: z.enum(PROVIDER_KEY_STATUSES, { error: `must be one of ${PROVIDER_KEY_STATUSES.join(', ')}` }),
    active_from: time.nullable().default(null),
    revoked_at: time
      .nullable()
      .default(null)
      .meta({ description: 'Given exactly when the status is revoked' }),
  })
  .refine((item) => (item.status === 'revoked') === (item.revoked_at !== null), {
    path: ['revoked_at'],
    error: 'must be given when the status is revoked, and only then',
  })
  .refine(
    (item) => item.revoked_at === null || item.active_from === null || item.revoked_at >= item.active_from,
    {
      path: ['revoked_at'],
      error: 'must not lie before active_from',
    },
  );

export const putProviderKeysBody = z
  .strictObject({
    items: z
      .array(itemBody)
      .max(ITEMS_MAX, { error: `must have at most ${ITEMS_MAX} entries; send the rest in another request` }),
  })
  .superRefine(({ items }, context) => {
    const seen = new Set<string>();
    items.forEach((item, index) => {
      const key = `${item.provider}\n${item.provider_key_id}`;
      if (seen.has(key)) {
        context.addIssue({
          code: 'custom',
          path: ['items', index, 'provider_key_id'],
          message: 'is given twice for this provider; give it once',
        });
      }
      seen.add(key);
    });
  })
  .meta({ id: 'ProviderKeysUpdate' });

export function keysOfBody(body: z.output<typeof putProviderKeysBody>): ProviderKey[] {
  return body.items.map((item) => ({
    provider: item.provider,
    providerKeyId: item.provider_key_id,
    providerAccountId: item.provider_account_id,
    name: item.name,
    project: item.project,
    teamId: item.team_id,
    status: item.status,
    activeFromMicros: item.active_from,
    revokedAtMicros: item.revoked_at,
  }));
}

export const listProviderKeysQuery = z.object({
  provider: filterParameter.optional(),
  ...offsetParameters(10_000, 1_000),
  since: instantParameter
    .optional()
    .meta({ description: 'Bills to look through; by default the 90 days up to until' }),
  until: instantParameter.optional().meta({ description: 'By default now' }),
});

const providerKeySchema = z
  .strictObject({
    provider: z.string(),
    provider_account_id: z.string().nullable(),
    provider_key_id: z.string(),
    name: z.string(),
    project: z.string().nullable(),
    team_id: z.string().nullable(),
    status: z.enum(PROVIDER_KEY_STATUSES),
    active_from: z.string().nullable(),
    revoked_at: z.string().nullable(),
    created_at: z.string(),
    updated_at: z.string(),
  })
  .meta({ id: 'ProviderKey' });

export const suspectKeySchema = z
  .strictObject({
    provider: z.string(),
    provider_account_id: z.string(),
    provider_key_id: z.string(),
    reason: z.enum(SUSPECT_KEY_REASONS).meta({
      description:
        'unknown: no entry and no call names it; billed_after_revocation: billed for time after revoked_at',
    }),
    first_day: z.string(),
    last_day: z.string(),
    billed_usd: z.number().nullable().meta({
      description: 'What the counted bills name it for; null where only a usage report does',
    }),
  })
  .meta({ id: 'SuspectKey' });

export const listProviderKeysResponse = z.strictObject({
  items: z.array(providerKeySchema),
  ...pageFields,
  unknown: z.array(suspectKeySchema).meta({
    description:
      'Billed keys that no entry and no call knows, and keys billed after they were revoked; the most dollars first, at most 200',
  }),
  unknown_count: z.int(),
});

export const putProviderKeysResponse = z.strictObject({ items: z.array(providerKeySchema), count: z.int() });

export function presentProviderKey(key: StoredProviderKey): z.output<typeof providerKeySchema> {
  return {
    provider: key.provider,
    provider_account_id: key.providerAccountId,
    provider_key_id: key.providerKeyId,
    name: key.name,
    project: key.project,
    team_id: key.teamId,
    status: key.status,
    active_from: isoOrNull(key.activeFromMicros),
    revoked_at: isoOrNull(key.revokedAtMicros),
    created_at: isoFromMicros(key.createdAtMicros),
    updated_at: isoFromMicros(key.updatedAtMicros),
  };
}

export function presentSuspectKey(key: z.output<typeof suspectKeySchema>): z.output<typeof suspectKeySchema> {
  return {
    provider: key.provider,
    provider_account_id: key.provider_account_id,
    provider_key_id: key.provider_key_id,
    reason: key.reason,
    first_day: key.first_day,
    last_day: key.last_day,
    billed_usd: key.billed_usd,
  };
}

export function wireOfSuspect(key: SuspectKey): z.output<typeof suspectKeySchema> {
  return {
    provider: key.provider,
    provider_account_id: key.providerAccountId,
    provider_key_id: key.providerKeyId,
    reason: key.reason,
    first_day: key.firstDay,
    last_day: key.lastDay,
    billed_usd: usdNumberOrNull(key.billedPico),
  };
}

export function presentProviderKeys(
  found: readonly StoredProviderKey[],
  query: z.output<typeof listProviderKeysQuery>,
  suspects: { keys: readonly SuspectKey[]; count: number },
): z.output<typeof listProviderKeysResponse> {
  const { shown, page } = pageOf(found, query);
  return {
    items: shown.map(presentProviderKey),
    ...page,
    unknown: suspects.keys.map(wireOfSuspect),
    unknown_count: suspects.count,
  };
}
