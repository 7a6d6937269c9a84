import type { Notice } from '../../domain/policies/alerts/alert.js';
import { alertMessage } from '../../domain/policies/alerts/alertMessage.js';
import type { OrgDb } from '../orgDb.js';
import { publishMessages } from '../webhooks/webhookMessages.js';

/** Characters of a notice's sentence at most; a failure's own words may be longer. */
const MESSAGE_CHARS_MAX = 1_000;

/**
 * Puts a notice into the alerts feed and leaves its webhook message. Call it in the transaction of the event that it
 * reports. Returns the alert's uuid when it is new; an organization has one notice of a key for ever, so a key names an
 * episode, for example `connection_broken:<id>:<time when it began>`.
 */
export async function recordNotice(inside: OrgDb, notice: Notice): Promise<string | undefined> {
  const rows = await inside.rows<{ id: string; created_at: bigint }>(
    `insert into alerts (org_id, id, kind, notice, notice_key, subject_type, subject_id, severity, message, details, provider)
     values ($1, gen_random_uuid(), 'notice', $2, $3, $4, $5, $6, $7, $8::jsonb, $9)
     on conflict (org_id, notice_key) where kind = 'notice' do nothing
     returning id, created_at`,
    [
      inside.orgId,
      notice.code,
      notice.key,
      notice.subject.type,
      notice.subject.id,
      notice.severity,
      notice.message.slice(0, MESSAGE_CHARS_MAX),
      JSON.stringify(notice.details),
      notice.provider,
    ],
  );
  const stored = rows[0];
  if (!stored) return undefined;
  await publishMessages(inside, [
    alertMessage({
      id: stored.id,
      kind: 'notice',
      policyType: null,
      policyId: null,
      eventId: null,
      notice: notice.code,
      subject: notice.subject,
      severity: notice.severity,
      createdAtMicros: stored.created_at,
    }),
  ]);
  return stored.id;
}
