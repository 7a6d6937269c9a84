import { z } from 'zod';
import type { LoggedDelivery, SentTest, WebhookAttempt } from '../../../db/webhooks/webhookDeliveries.js';
import { publicId } from '../../../domain/ids.js';
import { isoFromMicros, isoOrNull } from '../../../domain/period.js';
import { DELIVERY_STATUSES, MESSAGE_TYPES } from '../../../domain/webhooks/messages.js';
import { ATTEMPTS_SHOWN_MAX } from '../../../domain/webhooks/retrySchedule.js';
import { cursoredPageFields, offsetParameters, pageParameters } from '../../paging.js';

/** Deliveries include the receivers' answers, so their pages are smaller than those of other lists. */
export const DELIVERIES_LIMIT_MAX = 100;
const DELIVERIES_LIMIT_DEFAULT = 50;

export const deliveryParams = z.object({
  id: z.string().meta({ example: 'dlv_0199f3a2c4d57e3a8f00112233445566' }),
});

export const listDeliveriesQuery = z.object({
  status: z.enum(DELIVERY_STATUSES, { error: `must be one of ${DELIVERY_STATUSES.join(', ')}` }).optional(),
  type: z.enum(MESSAGE_TYPES, { error: `must be one of ${MESSAGE_TYPES.join(', ')}` }).optional(),
  ...pageParameters,
  ...offsetParameters(DELIVERIES_LIMIT_MAX, DELIVERIES_LIMIT_DEFAULT),
});

const attemptSchema = z
  .strictObject({
    number: z.int().meta({ description: 'Over all series of the delivery, from 1' }),
    started_at: z.string(),
    duration_ms: z
      .int()
      .nullable()
      .meta({ description: 'null while it is under way, and where the service ended before it knew' }),
    http_status: z
      .int()
      .nullable()
      .meta({ description: 'Of a mail server its reply code; null: no answer came' }),
    error: z.string().nullable(),
    answer: z.string().nullable().meta({ description: 'The beginning of what the receiver said' }),
  })
  .meta({ id: 'WebhookAttempt' });

export const deliverySchema = z
  .strictObject({
    id: z.string(),
    webhook_endpoint_id: z.string(),
    message_id: z.string().meta({
      description: 'The header webhook-id: the same at every attempt, and in every redelivery',
      example: 'msg_0199f3a2c4d57e3a8f00112233445566',
    }),
    type: z.enum(MESSAGE_TYPES),
    status: z.enum(DELIVERY_STATUSES).meta({
      description:
        'failed: given up after the last attempt, or refused for good; cancelled: its endpoint was switched off or removed before; gathered: it is in a digest, digest_delivery_id',
    }),
    attempts_made: z.int().meta({ description: 'Since it was made, or started again' }),
    next_attempt_at: z.string().nullable(),
    last_status: z.int().nullable(),
    last_error: z.string().nullable(),
    digest_delivery_id: z
      .string()
      .nullable()
      .meta({ description: 'The delivery of the digest that the message is in; null: none' }),
    created_at: z.string(),
    finished_at: z.string().nullable(),
    attempts: z
      .array(attemptSchema)
      .meta({ description: `The latest first, at most ${ATTEMPTS_SHOWN_MAX} of them` }),
  })
  .meta({ id: 'WebhookDelivery' });

export const listDeliveriesResponse = z.strictObject({
  deliveries: z.array(deliverySchema),
  ...cursoredPageFields,
});

export const testedWebhookSchema = z
  .strictObject({
    ok: z.boolean().meta({ description: 'The receiver answered 2xx' }),
    http_status: z.int().nullable(),
    duration_ms: z.int(),
    error: z.string().nullable(),
    answer: z.string().nullable().meta({ description: 'The beginning of what the receiver said' }),
    delivery_id: z.string(),
    message_id: z.string(),
  })
  .meta({ id: 'WebhookTest' });

function presentAttempt(attempt: WebhookAttempt): z.output<typeof attemptSchema> {
  return {
    number: attempt.number,
    started_at: isoFromMicros(attempt.startedAtMicros),
    duration_ms: attempt.durationMs,
    http_status: attempt.httpStatus,
    error: attempt.error,
    answer: attempt.answer,
  };
}

export function presentDelivery(delivery: LoggedDelivery): z.output<typeof deliverySchema> {
  return {
    id: publicId('dlv', delivery.id),
    webhook_endpoint_id: publicId('whk', delivery.endpointId),
    message_id: publicId('msg', delivery.messageId),
    type: delivery.type,
    status: delivery.status,
    attempts_made: delivery.attempts,
    next_attempt_at: isoOrNull(delivery.nextAttemptAtMicros),
    last_status: delivery.lastStatus,
    last_error: delivery.lastError,
    digest_delivery_id: delivery.digestDeliveryId && publicId('dlv', delivery.digestDeliveryId),
    created_at: isoFromMicros(delivery.createdAtMicros),
    finished_at: isoOrNull(delivery.finishedAtMicros),
    attempts: delivery.history.map(presentAttempt),
  };
}

export function presentTest({
  deliveryId,
  messageId,
  outcome,
}: SentTest): z.output<typeof testedWebhookSchema> {
  return {
    ok: outcome.result === 'delivered',
    http_status: outcome.httpStatus,
    duration_ms: outcome.durationMs,
    error: outcome.error,
    answer: outcome.answer,
    delivery_id: publicId('dlv', deliveryId),
    message_id: publicId('msg', messageId),
  };
}
