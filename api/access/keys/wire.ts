import { z } from 'zod';
import type { ApiKey } from '../../../db/access/keys.js';
import {
  GRACE_SECONDS_DEFAULT,
  GRACE_SECONDS_MAX,
  KEY_STATUSES,
  ROLES,
  SCOPES,
  type Scope,
} from '../../../domain/access/keyRules.js';
import { findUuid, publicId } from '../../../domain/ids.js';
import { isoFromMicros, isoOrNull } from '../../../domain/period.js';
import { cursoredPageFields, pageParameters } from '../../paging.js';
import { graceField, momentField, nameField } from '../../query.js';

export const KEYS_PATH = '/api/v1/keys';

const SCOPES_RULE = `must be a list of scopes, out of ${SCOPES.join(', ')}`;
const SCOPE_RULE = `must be one of ${SCOPES.join(', ')}`;
/** Key scopes without repeats, in the order of the list of scopes. */
const scopesField = z
  .array(z.enum(SCOPES, { error: SCOPE_RULE }), { error: SCOPES_RULE })
  .min(1, { error: 'must name at least one; null: all that the role holds' })
  .max(SCOPES.length * 2, { error: 'names too many scopes' })
  .transform((named): Scope[] => SCOPES.filter((scope) => named.includes(scope)))
  .meta({ type: 'array', items: { type: 'string', enum: [...SCOPES] } });

const expiryField = momentField(
  'must be an ISO 8601 time such as 2026-12-31T00:00:00Z',
  'ISO 8601 time; a date is its first moment, UTC',
);

const WORKSPACE_RULE = 'must be the id of a workspace, wsp_…';
/** A workspace's public id; parsed to its uuid. */
const workspaceField = z
  .string({ error: WORKSPACE_RULE })
  .transform((id, context): string => {
    const uuid = findUuid('wsp', id);
    if (uuid !== undefined) return uuid;
    context.addIssue({ code: 'custom', message: WORKSPACE_RULE });
    return z.NEVER;
  })
  .meta({ type: 'string', example: 'wsp_0199f3a2c4d57e3a8f00112233445566' });

export const createKeyBody = z
  .strictObject({
    name: nameField,
    role: z.enum(ROLES, { error: `must be one of ${ROLES.join(', ')}` }),
    scopes: scopesField
      .nullable()
      .default(null)
      .meta({ description: 'Narrows the key; null: all that its role holds' }),
    workspace_id: workspaceField
      .nullable()
      .default(null)
      .meta({ description: 'Binds the key to a workspace, for good; null: the whole organization' }),
    expires_at: expiryField.nullable().default(null).meta({ description: 'null: it has no end' }),
  })
  .meta({ id: 'NewKey' });

export const updateKeyBody = z
  .strictObject({
    name: nameField.optional(),
    scopes: scopesField.nullable().optional().meta({ description: 'null: all that its role holds' }),
    expires_at: expiryField.nullable().optional().meta({ description: 'null: it has no end' }),
  })
  .meta({ id: 'KeyChanges' });

export const rotateKeyBody = z
  .strictObject({
    grace_seconds: graceField(
      GRACE_SECONDS_MAX,
      GRACE_SECONDS_DEFAULT,
      'How long the secret at hand holds too',
    ),
  })
  .meta({ id: 'KeyRotation' });

export const keyParams = z.object({ id: z.string().meta({ example: 'key_0123456789' }) });

export const listKeysQuery = z.object({
  role: z.enum(ROLES, { error: `must be one of ${ROLES.join(', ')}` }).optional(),
  status: z.enum(KEY_STATUSES, { error: `must be one of ${KEY_STATUSES.join(', ')}` }).optional(),
  workspace_id: z.string().max(64).optional().meta({ description: 'Only keys that are bound to it' }),
  ...pageParameters,
});

const keyFields = {
  id: z.string().meta({ description: 'Never changes; calls name it' }),
  name: z.string(),
  role: z.enum(ROLES),
  scopes: z.array(z.enum(SCOPES)).nullable().meta({ description: 'null: all that the role holds' }),
  workspace_id: z.string().nullable(),
  last4: z.string().meta({ description: 'The last characters of the key' }),
  status: z.enum(KEY_STATUSES).meta({
    description: 'rotating: the secret before the last rotation holds too, until previous_valid_until',
  }),
  created_at: z.string(),
  created_by: z.string().nullable().meta({ description: 'The id of the key that made it, or a command' }),
  last_used_at: z.string().nullable().meta({ description: 'Written at most once a minute' }),
  expires_at: z.string().nullable(),
  revoked_at: z.string().nullable(),
  revoked_by: z.string().nullable(),
  previous_valid_until: z.string().nullable(),
};

export const keySchema = z.strictObject(keyFields).meta({ id: 'Key' });
export const keyWithSecretSchema = z
  .strictObject({
    ...keyFields,
    key: z.string().meta({ description: 'The key itself: shown this once and stored nowhere' }),
  })
  .meta({ id: 'KeyWithSecret' });

export const listKeysResponse = z.strictObject({
  keys: z.array(keySchema),
  ...cursoredPageFields,
});

export function presentKey(key: ApiKey): z.output<typeof keySchema> {
  return {
    id: key.id,
    name: key.name,
    role: key.role,
    scopes: key.scopes === null ? null : [...key.scopes],
    workspace_id: key.workspaceId === null ? null : publicId('wsp', key.workspaceId),
    last4: key.last4,
    status: key.status,
    created_at: isoFromMicros(key.createdAtMicros),
    created_by: key.createdBy,
    last_used_at: isoOrNull(key.lastUsedAtMicros),
    expires_at: isoOrNull(key.expiresAtMicros),
    revoked_at: isoOrNull(key.revokedAtMicros),
    revoked_by: key.revokedBy,
    previous_valid_until: isoOrNull(key.previousValidUntilMicros),
  };
}
