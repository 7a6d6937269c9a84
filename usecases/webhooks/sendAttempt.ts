import type { BlobStore } from '../../adapters/blobs/blobStore.js';
import type { DeliverMail } from '../../adapters/mail/smtpMailer.js';
import type { DeliverWebhook } from '../../adapters/outbound/deliverWebhook.js';
import type { OrgDb } from '../../db/orgDb.js';
import { findAlert } from '../../db/policies/alerts.js';
import type { WebhookEndpoint } from '../../db/webhooks/webhookEndpoints.js';
import { DomainError } from '../../domain/errors.js';
import { findUuid, publicId } from '../../domain/ids.js';
import type { DigestData } from '../../domain/webhooks/digest.js';
import { DIGEST_MESSAGE_TYPE, type MessageType } from '../../domain/webhooks/messages.js';
import { hookBody, mailParts, type ShownNotice } from '../../domain/webhooks/noticeFormats.js';
import {
  type AlertFacts,
  type NoticeText,
  noticeOf,
  type StoredMessage,
} from '../../domain/webhooks/notices.js';
import type { AttemptOutcome } from '../../domain/webhooks/retrySchedule.js';
import { openSecrets, signingSecrets } from '../../domain/webhooks/secret.js';
import type { SecretKeys } from '../../platform/secretKeys.js';
import { openReport } from '../reports/reportFiles.js';
import { UNSUBSCRIBE_PATH, unsubscribeToken } from './unsubscribe.js';

export interface AttemptDeps {
  deliverWebhook: DeliverWebhook;
  /** undefined: SMTP_URL is not set. */
  deliverMail?: DeliverMail | undefined;
  /** The store of reports that mails attach. */
  blobs: BlobStore;
  secretKeys: SecretKeys;
  /** The address of this installation, without a slash at its end. */
  baseUrl(): string;
  nowMicros(): bigint;
}

export interface MessageToSend {
  deliveryId: string;
  messageId: string;
  type: MessageType;
  body: string;
}

/** The refusal of an e-mail where the operator has set no mail server. */
export function mailNotConfigured(): DomainError {
  return new DomainError(
    'mail_not_configured',
    'e-mail needs a mail server: whoever runs the service sets SMTP_URL and MAIL_FROM',
  );
}

/**
 * The decrypted secrets that sign an endpoint's messages, or that end its e-mails; none for a format without secrets. Errors: credentials_missing, secret_key_missing, mail_not_configured.
 */
export function secretsForSending(
  orgId: string,
  endpoint: WebhookEndpoint,
  { secretKeys, deliverMail, nowMicros }: Pick<AttemptDeps, 'secretKeys' | 'deliverMail' | 'nowMicros'>,
): string[] {
  if (endpoint.format === 'email' && !deliverMail) throw mailNotConfigured();
  if (endpoint.format === 'slack' || endpoint.format === 'teams') return [];
  return signingSecrets(openSecrets(secretKeys, orgId, endpoint), nowMicros());
}

/** Makes one attempt to send a message in the endpoint's format. */
export async function sendAttempt(
  orgDb: OrgDb,
  { endpoint, secrets }: { endpoint: WebhookEndpoint; secrets: readonly string[] },
  message: MessageToSend,
  signal: AbortSignal,
  deps: AttemptDeps,
): Promise<AttemptOutcome> {
  const { format, url, recipient } = endpoint;
  const messageId = publicId('msg', message.messageId);
  if (format === 'standard')
    return deps.deliverWebhook({ url: url ?? '', messageId, body: message.body, secrets, signal });
  const stored = JSON.parse(message.body) as StoredMessage;
  const notice = await shownNotice(orgDb, stored, deps);
  if (format !== 'email') {
    const body = hookBody(format, notice);
    return deps.deliverWebhook({ url: url ?? '', messageId, body, secrets: [], signal });
  }
  if (!deps.deliverMail) throw mailNotConfigured();
  const baseUrl = deps.baseUrl();
  const token = unsubscribeToken(secrets[0] ?? '');
  return deps.deliverMail({
    ...mailParts(notice, `${baseUrl}${UNSUBSCRIBE_PATH}#${token}`),
    to: recipient ?? '',
    messageId: `<${publicId('dlv', message.deliveryId)}@${new URL(baseUrl).hostname}>`,
    date: new Date(stored.timestamp),
    unsubscribeUrl: `${baseUrl}${UNSUBSCRIBE_PATH}?token=${token}`,
    attachment: endpoint.reportCadence === null ? undefined : await attachmentOf(orgDb, stored, deps),
    signal,
  });
}

async function shownNotice(orgDb: OrgDb, message: StoredMessage, deps: AttemptDeps): Promise<ShownNotice> {
  const notice = await noticeOfMessage(orgDb, message, deps.baseUrl());
  if (message.type !== DIGEST_MESSAGE_TYPE) return { ...notice, lines: [], more: 0 };
  const { notices, count } = message.data as unknown as DigestData;
  return { ...notice, lines: notices, more: count - notices.length };
}

/** The notice of a message, with the sentence of its alert if that still exists. */
export async function noticeOfMessage(
  orgDb: OrgDb,
  message: StoredMessage,
  baseUrl: string,
): Promise<NoticeText> {
  const alert = message.type === 'alert.created' ? await findAlertFacts(orgDb, message) : undefined;
  return noticeOf(message, { baseUrl, alert });
}

async function findAlertFacts(orgDb: OrgDb, { data }: StoredMessage): Promise<AlertFacts | undefined> {
  const id = findUuid('alr', String(data.alert_id));
  return id === undefined ? undefined : findAlert(orgDb, id);
}

/** Largest report that a mail attaches, bytes: many servers refuse mails over 10 MB, and base64 adds a third. */
const ATTACHMENT_BYTES_MAX = 7_000_000;

/** The document of a report; undefined: it is too large or has expired, and the mail has its link alone. */
async function attachmentOf(orgDb: OrgDb, { type, data }: StoredMessage, { blobs }: AttemptDeps) {
  if (type !== 'report.generated') return undefined;
  try {
    const { sizeBytes, stream } = await openReport({ blobs }, orgDb, String(data.report_id));
    if (sizeBytes > ATTACHMENT_BYTES_MAX) {
      stream.destroy();
      return undefined;
    }
    const content = Buffer.concat(await stream.toArray());
    const filename = `report-${data.period_from}-${data.period_to}.pdf`;
    return { filename, contentType: 'application/pdf', content };
  } catch (error) {
    if (error instanceof DomainError && error.code === 'report_not_found') return undefined;
    throw error;
  }
}
