import { z } from 'zod';
import type { StoredAlert } from '../../../db/policies/alerts.js';
import { publicId } from '../../../domain/ids.js';
import { usdNumberOrNull } from '../../../domain/money.js';
import { isoFromMicros, isoOrNull } from '../../../domain/period.js';
import { ALERT_KINDS, ALERT_STATUSES, NOTICE_CODES, SEVERITIES } from '../../../domain/policies/alert.js';
import { POLICY_TYPES } from '../../../domain/policies/policy.js';
import { csvList } from '../../csv.js';
import { cursoredPageFields, pageParameters } from '../../paging.js';
import { filterParameter, instantParameter } from '../../query.js';

export const ALERTS_PATH = '/api/v1/alerts';

/** A filter by a word of a list. A word outside the list is refused as a typing error. */
const wordParameter = <const T extends readonly [string, ...string[]]>(words: T) =>
  z.enum(words, { error: `must be ${words.slice(0, -1).join(', ')} or ${words.at(-1)}` }).optional();

export const listAlertsQuery = z.object({
  kind: wordParameter(ALERT_KINDS).meta({
    description: 'policy: a call broke one. notice: the system has something to say of its own',
  }),
  policy_type: wordParameter(POLICY_TYPES),
  severity: wordParameter(SEVERITIES),
  status: wordParameter(ALERT_STATUSES),
  model: filterParameter.optional().meta({ description: 'The model of the call, as the event has it' }),
  since: instantParameter.optional().meta({ description: 'Alerts made at this time or later' }),
  until: instantParameter
    .optional()
    .meta({ description: 'Alerts made at this time or earlier; a date means the whole day' }),
  ...pageParameters,
});

export const alertParams = z.object({
  id: z
    .string()
    .max(64, { error: 'is not an alert id' })
    .meta({ example: 'alr_0199f3a2c4d57e3a8f00112233445566' }),
});

const ofCall = (description: string) => z.string().nullable().meta({ description });

export const alertSchema = z
  .strictObject({
    id: z.string(),
    kind: z.enum(ALERT_KINDS),
    policy_type: z.enum(POLICY_TYPES).nullable(),
    policy_id: z.int().nullable(),
    notice: z.enum(NOTICE_CODES).nullable().meta({ description: 'Which notice it is; null for kind policy' }),
    event_id: ofCall(
      'The call that broke the policy; null for a notice. It may be older than calls are kept',
    ),
    subject: z.strictObject({
      type: z.string().meta({ example: 'event' }),
      id: z.string().meta({ description: 'Of a policy’s alert the event' }),
    }),
    severity: z.enum(SEVERITIES),
    status: z.enum(ALERT_STATUSES),
    message: z.string(),
    details: z
      .record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null(), z.array(z.string())]))
      .meta({ description: 'By policy type or notice; never text of a prompt' }),
    provider: ofCall('Of the call, or what the notice concerns'),
    model: ofCall('Of the call, as it stood when the alert was made'),
    team_id: ofCall('Of the call'),
    feature: ofCall('Of the call'),
    session_id: ofCall('Of the call'),
    project_id: ofCall('Of the call'),
    cost_usd: z
      .number()
      .nullable()
      .meta({ description: 'Of the call when the alert was made; null for a notice' }),
    event_timestamp: z.string().nullable(),
    created_at: z.string(),
    acknowledged_at: z.string().nullable(),
    acknowledged_by: z.string().nullable().meta({ description: 'The id of the key that was the first to' }),
  })
  .meta({ id: 'Alert' });

export const listAlertsResponse = z.strictObject({ alerts: z.array(alertSchema), ...cursoredPageFields });

export function presentAlert(alert: StoredAlert): z.output<typeof alertSchema> {
  return {
    id: publicId('alr', alert.id),
    kind: alert.kind,
    policy_type: alert.policyType,
    policy_id: alert.policyId,
    notice: alert.notice,
    event_id: alert.eventId === null ? null : publicId('evt', alert.eventId),
    subject: { type: alert.subject.type, id: alert.subject.id },
    severity: alert.severity,
    status: alert.status,
    message: alert.message,
    details: alert.details as z.output<typeof alertSchema>['details'],
    provider: alert.provider,
    model: alert.model,
    team_id: alert.teamId,
    feature: alert.feature,
    session_id: alert.sessionId,
    project_id: alert.projectId,
    cost_usd: usdNumberOrNull(alert.costPico),
    event_timestamp: isoOrNull(alert.eventTimestampMicros),
    created_at: isoFromMicros(alert.createdAtMicros),
    acknowledged_at: isoOrNull(alert.acknowledgedAtMicros),
    acknowledged_by: alert.acknowledgedBy,
  };
}

/** The list as CSV. */
export const alertsCsv = csvList('alerts', 'alerts', alertSchema);
