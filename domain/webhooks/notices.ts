import { dollarsText } from '../claims/financialSummary.js';
import { centsFromPico, type Pico, picoFromDecimal } from '../money.js';
import { DIGEST_MESSAGE_TYPE, type MessageType, type MessageValue, TEST_MESSAGE_TYPE } from './messages.js';

/** A message for people: what happened, the amount that it is about, and where to read on. */
export interface NoticeText {
  sentence: string;
  /** null: the message is about no amount. */
  amount: string | null;
  link: string;
}

/** A stored message, as receivers of the standard format get it. */
export interface StoredMessage {
  type: MessageType;
  timestamp: string;
  data: Data;
}
type Data = { readonly [name: string]: MessageValue };

/** An alert's own sentence and the cost of its call: its message has ids only. */
export interface AlertFacts {
  message: string;
  costPico: Pico | null;
}

interface Said {
  sentence: string;
  amount: string | null;
  /** Below the address of this installation. */
  path: string;
}

/** Most characters of a sentence; one from an alert may be longer. */
const SENTENCE_CHARS_MAX = 600;

/** The notice of a message. `alert` has the facts of an `alert.created` that still exists. */
export function noticeOf(
  { type, data }: StoredMessage,
  { baseUrl, alert }: { baseUrl: string; alert?: AlertFacts | undefined },
): NoticeText {
  const { sentence, amount, path } = SAYING[type](data, alert);
  return { sentence: plainText(sentence, SENTENCE_CHARS_MAX), amount, link: `${baseUrl}${path}` };
}

const SAYING: Record<MessageType, (data: Data, alert: AlertFacts | undefined) => Said> = {
  'alert.created': (data, alert) => ({
    sentence: alert ? `Alert (${data.severity}): ${alert.message}` : alertSentence(data),
    amount: alert?.costPico ? dollarsText(centsFromPico(alert.costPico)) : null,
    path: `/api/v1/alerts/${data.alert_id}`,
  }),
  'claim.created': (data) => ({
    sentence: `A claim against ${data.provider} for ${data.period_start} to ${data.period_end} was drafted.`,
    amount: centsText(data.total_recoverable_cents),
    path: claimPath(data),
  }),
  'claim.reminder': (data) => ({
    sentence: `A claim against ${data.provider} has waited as ${words(data.status)} since ${dayText(data.since)}: ${REMINDERS[String(data.action)] ?? words(data.action)}.`,
    amount: centsText(data.total_recoverable_cents),
    path: claimPath(data),
  }),
  'claim.status_changed': (data) => ({
    sentence: `A claim against ${data.provider} is now ${words(data.status)}; it was ${words(data.previous_status)}.`,
    amount: centsText(data.credit_issued_cents ?? data.total_recoverable_cents),
    path: claimPath(data),
  }),
  'dispute.opened': (data) => ({
    sentence: `A dispute with ${data.provider} was opened: ${words(data.kind)}, ${data.period_start} to ${data.period_end}.`,
    amount: centsText(data.amount_cents),
    path: `/api/v1/financial/disputes/${data.dispute_id}`,
  }),
  'dispute.resolved': (data) => ({
    sentence: `A dispute with ${data.provider} was resolved: ${words(data.resolution)}.`,
    amount: centsText(data.amount_cents),
    path: `/api/v1/financial/disputes/${data.dispute_id}`,
  }),
  'gap_run.completed': (data) => ({
    sentence: `The comparison of ${data.provider ?? 'all providers'} over ${data.period} ${runSentence(data)}.`,
    amount: null,
    path: `/api/v1/reconciliation/gap-explorer/runs/${data.run_id}`,
  }),
  'invoice.processed': (data) => ({
    sentence: `${invoiceName(data)} was read and ${data.status === 'reconciled' ? 'agrees with the bill' : 'needs a review'}.`,
    amount: moneyText(data.total, data.currency),
    path: invoicePath(data),
  }),
  'invoice.failed': (data) => ({
    sentence: `${invoiceName(data)} cannot be read: ${words(data.failure_code)}.`,
    amount: null,
    path: invoicePath(data),
  }),
  'report.generated': (data) => ({
    sentence: `The ${data.cadence ? `${data.cadence} ` : ''}report for ${data.period_from} to ${data.period_to} is ready.`,
    amount: null,
    path: `/api/v1/reports/${data.report_id}`,
  }),
  'pricing.proposed': (data) => ({
    sentence: `${data.proposals === 1 ? 'A price differs' : `${data.proposals} prices differ`} from ${data.feed}; ${data.models_in_use} of them ${data.models_in_use === 1 ? 'has' : 'have'} calls of the last 30 days. Nothing was applied.`,
    amount: moneyText(data.change_30d_usd, 'USD'),
    path: '/prices/proposals',
  }),
  [TEST_MESSAGE_TYPE]: (data) => ({
    sentence: 'This is a test message: notices of Trueup arrive here.',
    amount: null,
    path: `/api/v1/webhook-endpoints/${data.webhook_endpoint_id}`,
  }),
  [DIGEST_MESSAGE_TYPE]: (data) => ({
    sentence:
      data.count === 1 ? 'One notice since the last digest.' : `${data.count} notices since the last digest.`,
    amount: null,
    path: `/api/v1/webhook-endpoints/${data.webhook_endpoint_id}/deliveries`,
  }),
};

const REMINDERS: Record<string, string> = {
  remind: 'ask for an answer',
  urgent: 'it is urgent',
  suggest_escalation: 'consider an escalation',
};

const claimPath = (data: Data): string => `/api/v1/claims/${data.claim_id}`;
const invoicePath = (data: Data): string => `/api/v1/reconciliation/invoices/${data.invoice_id}`;
const words = (value: MessageValue | undefined): string => String(value ?? 'unknown').replaceAll('_', ' ');
const dayText = (value: MessageValue | undefined): string => String(value ?? '').slice(0, 10);

function alertSentence(data: Data): string {
  return data.kind === 'notice'
    ? `Notice (${data.severity}): ${words(data.notice)}.`
    : `Alert (${data.severity}): a call broke the policy ${words(data.policy_type)}.`;
}

function runSentence({ status, total, flagged }: Data): string {
  if (status !== 'succeeded' && status !== 'partial') return `ended as ${words(status)}`;
  const part = status === 'partial' ? 'ended in part' : 'has ended';
  return total === null ? part : `${part}: ${flagged} of ${total} lines are gaps`;
}

function invoiceName({ provider, number }: Data): string {
  return `The invoice ${number ? `${number} ` : ''}of ${provider}`;
}

function centsText(cents: MessageValue | undefined): string | null {
  return typeof cents === 'number' ? dollarsText(BigInt(cents)) : null;
}

function moneyText(total: MessageValue | undefined, currency: MessageValue | undefined): string | null {
  const pico = typeof total === 'string' ? picoFromDecimal(total) : undefined;
  if (pico === undefined) return null;
  const text = dollarsText(centsFromPico(pico));
  return currency === 'USD' || currency === null ? text : `${text.replace('$', '')} ${currency}`;
}

/** One line without control characters and direction marks, cut to so many characters. */
export function plainText(text: string, charsMax: number): string {
  const line = text
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]+/gu, ' ')
    .replace(/ {2,}/g, ' ')
    .trim()
    .toWellFormed();
  const chars = Array.from(line);
  return chars.length <= charsMax ? line : `${chars.slice(0, charsMax - 1).join('')}…`;
}
