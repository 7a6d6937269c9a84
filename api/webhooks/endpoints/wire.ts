import { z } from 'zod';
import type { EndpointTarget, WebhookEndpoint } from '../../../db/webhooks/webhookEndpoints.js';
import { publicId } from '../../../domain/ids.js';
import { isoFromMicros, isoOrNull } from '../../../domain/period.js';
import { isMailAddress } from '../../../domain/webhooks/mailAddress.js';
import {
  DIGESTS,
  DISABLED_REASONS,
  ENDPOINT_FORMATS,
  WEBHOOK_EVENT_TYPES,
  type WebhookEventType,
} from '../../../domain/webhooks/messages.js';
import { GRACE_SECONDS_DEFAULT, GRACE_SECONDS_MAX } from '../../../domain/webhooks/secret.js';
import type { RotatedWebhook } from '../../../usecases/webhooks/endpoints.js';
import { cursoredPageFields, pageParameters } from '../../paging.js';
import { graceField } from '../../query.js';

export const WEBHOOKS_PATH = '/api/v1/webhook-endpoints';

const DESCRIPTION_CHARS_MAX = 256;
const TYPES_RULE = `must be a list of types, out of ${WEBHOOK_EVENT_TYPES.join(', ')}; empty: all of them`;

const urlField = z.string().meta({
  example: 'https://hooks.example.com/trueup',
  description:
    'http or https, at port 80 or 443 of a public address; other hosts and ports where the operator allows them',
});
const descriptionField = z
  .string()
  .trim()
  .max(DESCRIPTION_CHARS_MAX, { error: `must have at most ${DESCRIPTION_CHARS_MAX} characters` })
  // Postgres stores no NUL, and other control characters are invisible. Ranges are used because generators for other languages support them.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  .regex(/^[^\x00-\x1f\x7f-\x9f]*$/, { error: 'must not hold control characters' })
  .meta({ description: 'For people' });
const toField = z
  .string()
  .refine(isMailAddress, { error: 'must be one mail address such as finance@example.com' })
  .meta({
    example: 'finance@example.com',
    description: 'The address that mails go to, of the format email in place of url',
  });
const formatField = z
  .enum(ENDPOINT_FORMATS, { error: `must be one of ${ENDPOINT_FORMATS.join(', ')}` })
  .meta({
    description:
      'standard: signed messages (Standard Webhooks). slack, teams: to an incoming webhook there; email: to an address. These have one sentence, the amount and a link, and are not signed',
  });
const digestField = z.enum(DIGESTS, { error: `must be one of ${DIGESTS.join(', ')}` }).meta({
  description: 'daily: one message a day, at 8 in the organization’s time zone, in place of single ones',
});
/** Event types without repeats, in the order of the list of types. */
const eventTypesField = z
  .array(z.enum(WEBHOOK_EVENT_TYPES, { error: `must be one of ${WEBHOOK_EVENT_TYPES.join(', ')}` }), {
    error: TYPES_RULE,
  })
  .max(64, { error: 'names too many types' })
  .transform((named): WebhookEventType[] => WEBHOOK_EVENT_TYPES.filter((type) => named.includes(type)))
  .meta({
    type: 'array',
    items: { type: 'string', enum: [...WEBHOOK_EVENT_TYPES] },
    description: 'Empty: every type, those to come included',
  });

export const createWebhookBody = z
  .strictObject({
    format: formatField.default('standard'),
    url: urlField.optional(),
    to: toField.optional(),
    digest: digestField.default('none'),
    description: descriptionField.default(''),
    event_types: eventTypesField.default([]),
    enabled: z.boolean().default(true),
  })
  .superRefine(({ format, url, to }, context) => {
    const isMail = format === 'email';
    const refuse = (field: string, message: string) =>
      context.addIssue({ code: 'custom', path: [field], message });
    if (isMail && to === undefined) refuse('to', 'is needed with the format email');
    if (isMail && url !== undefined) refuse('url', 'goes with other formats than email; give to');
    if (!isMail && url === undefined) refuse('url', 'is needed, except with the format email');
    if (!isMail && to !== undefined) refuse('to', 'goes with the format email alone; give url');
  })
  .meta({
    id: 'NewWebhookEndpoint',
    examples: [
      { url: 'https://hooks.example.com/trueup', event_types: ['alert.created'] },
      {
        format: 'slack',
        url: 'https://hooks.slack.com/services/TEAM/CHANNEL/SECRET',
        event_types: ['alert.created'],
      },
      {
        format: 'teams',
        url: 'https://prod-00.westeurope.logic.azure.com/workflows/FLOW/triggers/manual/paths/invoke?sig=SECRET',
        event_types: ['claim.reminder'],
      },
      {
        format: 'email',
        to: 'finance@example.com',
        digest: 'daily',
        event_types: ['claim.reminder', 'report.generated'],
      },
    ],
  });

/** The receiver of a new endpoint's messages. */
export function targetOf({
  format,
  url = '',
  to = '',
  digest,
}: z.output<typeof createWebhookBody>): EndpointTarget {
  return format === 'email' ? { format, recipient: to, digest } : { format, url, digest };
}

export const updateWebhookBody = z
  .strictObject({
    url: urlField.optional(),
    digest: digestField.optional(),
    description: descriptionField.optional(),
    event_types: eventTypesField.optional(),
    enabled: z.boolean().optional().meta({
      description:
        'false: no more messages, and those that wait are cancelled. true: from now on again, also after a receiver answered 410',
    }),
  })
  .meta({ id: 'WebhookEndpointChanges' });

export const rotateSecretBody = z
  .strictObject({
    grace_seconds: graceField(
      GRACE_SECONDS_MAX,
      GRACE_SECONDS_DEFAULT,
      'How long the secret at hand signs too',
    ),
  })
  .meta({ id: 'WebhookSecretRotation' });

export const webhookParams = z.object({
  id: z.string().meta({ example: 'whk_0199f3a2c4d57e3a8f00112233445566' }),
});

export const listWebhooksQuery = z.object(pageParameters);

const endpointFields = {
  id: z.string(),
  format: z.enum(ENDPOINT_FORMATS),
  url: z
    .string()
    .nullable()
    .meta({ description: 'The given address, in the form of the URL standard; null: an e-mail' }),
  to: z.string().nullable().meta({ description: 'The address of an e-mail, else null' }),
  digest: z.enum(DIGESTS),
  description: z.string(),
  event_types: z.array(z.enum(WEBHOOK_EVENT_TYPES)).meta({ description: 'Empty: every type' }),
  enabled: z.boolean(),
  disabled_reason: z.enum(DISABLED_REASONS).nullable().meta({
    description:
      'requested: by an admin; gone: the receiver answered 410; unsubscribed: the recipient ended the mails',
  }),
  disabled_at: z.string().nullable(),
  has_secret: z.boolean().meta({
    description:
      'false: its format needs none, or it was given up with a lost secret key; rotate-secret gives a new one',
  }),
  last_delivered_at: z.string().nullable(),
  last_failed_at: z.string().nullable(),
  created_at: z.string(),
  updated_at: z.string(),
  created_by: z.string().meta({ description: 'The id of the key that made it' }),
};

export const webhookSchema = z.strictObject(endpointFields).meta({ id: 'WebhookEndpoint' });

const secretField = z
  .string()
  .meta({ description: 'What its messages are signed with: shown this once', example: 'whsec_…' });

export const webhookWithSecretSchema = z
  .strictObject({ ...endpointFields, secret: secretField.nullable() })
  .meta({ id: 'WebhookEndpointWithSecret' });

export const rotatedWebhookSchema = z
  .strictObject({
    ...endpointFields,
    secret: secretField,
    previous_valid_until: z
      .string()
      .nullable()
      .meta({ description: 'Until then the secret before signs too; null: it does no more' }),
  })
  .meta({ id: 'WebhookEndpointWithNewSecret' });

export const listWebhooksResponse = z.strictObject({
  webhook_endpoints: z.array(webhookSchema),
  ...cursoredPageFields,
});

export function presentWebhook(endpoint: WebhookEndpoint): z.output<typeof webhookSchema> {
  return {
    id: publicId('whk', endpoint.id),
    format: endpoint.format,
    url: endpoint.url,
    to: endpoint.recipient,
    digest: endpoint.digest,
    description: endpoint.description,
    event_types: [...endpoint.eventTypes],
    enabled: endpoint.status === 'active',
    disabled_reason: endpoint.disabledReason,
    disabled_at: isoOrNull(endpoint.disabledAtMicros),
    has_secret: endpoint.ciphertext !== null,
    last_delivered_at: isoOrNull(endpoint.lastDeliveredAtMicros),
    last_failed_at: isoOrNull(endpoint.lastFailedAtMicros),
    created_at: isoFromMicros(endpoint.createdAtMicros),
    updated_at: isoFromMicros(endpoint.updatedAtMicros),
    created_by: endpoint.createdBy,
  };
}

export function presentRotatedWebhook({
  endpoint,
  secret,
  previousUntilMicros,
}: RotatedWebhook): z.output<typeof rotatedWebhookSchema> {
  return { ...presentWebhook(endpoint), secret, previous_valid_until: isoOrNull(previousUntilMicros) };
}
