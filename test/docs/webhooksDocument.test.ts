import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { signMessage } from '../../adapters/outbound/deliverWebhook.js';
import { alertMessage } from '../../domain/policies/alert.js';
import {
  claimCreatedMessage,
  claimMovedMessage,
  claimReminderMessage,
  disputeMessage,
  disputeResolvedMessage,
  gapRunMessage,
  invoiceMessage,
  MESSAGE_TYPES,
  proposedMessage,
  reportMessage,
  WEBHOOK_EVENT_TYPES,
} from '../../domain/webhooks/messages.js';
import {
  ANSWER_CHARS_MAX,
  ATTEMPTS_SHOWN_MAX,
  RETRY_DELAYS_SECONDS,
} from '../../domain/webhooks/retrySchedule.js';
import {
  formatSecret,
  GRACE_SECONDS_DEFAULT,
  GRACE_SECONDS_MAX,
  SECRET_BYTES,
} from '../../domain/webhooks/secret.js';
import { WEBHOOK_MESSAGE_DAYS } from '../../usecases/installation/retention.js';
import { WEBHOOK_ENDPOINTS_MAX } from '../../usecases/webhooks/endpoints.js';

const PAGE = readFileSync(path.resolve(import.meta.dirname, '../../docs/webhooks.md'), 'utf8');

/** The block of the page that is opened with these words. */
function blockOf(words: string): string {
  const found = new RegExp(`^\`\`\`${words}\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(PAGE);
  if (!found) throw new Error(`docs/webhooks.md has no block ${words}`);
  return found[1] ?? '';
}

const UUID = '0199f3a2-c4d5-7e3a-8f00-112233445566';
const AT_MICROS = 1_781_827_200_000_000n;
const INVOICE = {
  id: UUID,
  runId: UUID.replace(/6$/, '7'),
  provider: 'anthropic',
  failureCode: null,
  number: 'A1B2C3D4-0012',
  currency: 'USD',
  total: 1_204_500_000_000_000n,
  tie: 'exact' as const,
  finishedAtMicros: AT_MICROS,
};
/** Messages as they are really made. */
const MADE: Record<string, string> = {
  'alert.created': alertMessage({
    id: UUID,
    kind: 'policy',
    policyType: 'approved_models',
    policyId: 1,
    eventId: UUID.replace(/6$/, '7'),
    notice: null,
    subject: { type: 'event', id: 'evt_0199f3a2c4d57e3a8f00112233445567' },
    severity: 'medium',
    createdAtMicros: AT_MICROS,
  }).body,
  'claim.created': claimCreatedMessage({
    id: UUID,
    provider: 'openai',
    tier: 'HIGH',
    recoverableCents: 849_312,
    periodStart: '2026-05-04',
    periodEnd: '2026-05-17',
    createdAtMicros: AT_MICROS,
  }).body,
  'claim.reminder': claimReminderMessage(UUID.replace(/6$/, '9'), {
    claim: {
      id: UUID,
      status: 'submitted_to_provider',
      provider: 'openai',
      recoverableCents: 849_312,
      enteredAtMicros: AT_MICROS - 5n * 86_400_000_000n,
      periodEnd: '2026-05-17',
      notifiedSteps: [],
      snoozedUntilMicros: null,
    },
    action: 'remind',
    dueMicros: AT_MICROS - 60_000_000n,
    alertId: UUID.replace(/6$/, '7'),
    atMicros: AT_MICROS,
  }).body,
  'claim.status_changed': claimMovedMessage(
    UUID.replace(/6$/, '7'),
    {
      id: UUID,
      version: 5,
      status: 'partial',
      provider: 'openai',
      tier: 'HIGH',
      recoverableCents: 849_312,
      creditIssuedCents: 800_000,
      externalTicketId: 'T-4711',
      submittedAtMicros: AT_MICROS - 30n * 86_400_000_000n + 34_200_000_000n,
      resolvedAtMicros: AT_MICROS,
    },
    'under_review',
    AT_MICROS,
  ).body,
  'dispute.opened': disputeMessage({
    id: UUID,
    findingId: UUID.replace(/6$/, '7'),
    kind: 'cached_tokens_double_metered',
    provider: 'openai',
    tier: 'HIGH',
    amountCents: 849_312,
    periodStart: '2026-05-04',
    periodEnd: '2026-05-17',
    openedAtMicros: AT_MICROS,
  }).body,
  'dispute.resolved': disputeResolvedMessage(UUID.replace(/6$/, '9'), {
    id: UUID,
    findingId: UUID.replace(/6$/, '7'),
    claimId: UUID.replace(/6$/, '8'),
    kind: 'cached_tokens_double_metered',
    provider: 'openai',
    tier: 'HIGH',
    amountCents: 849_312,
    periodStart: '2026-05-04',
    periodEnd: '2026-05-17',
    resolution: 'credit_received',
    resolvedAtMicros: AT_MICROS,
  }).body,
  'gap_run.completed': gapRunMessage({
    id: UUID,
    status: 'succeeded',
    period: '30d',
    provider: null,
    total: 120,
    flagged: 3,
    finishedAtMicros: AT_MICROS,
  }).body,
  'invoice.processed': invoiceMessage({ ...INVOICE, status: 'reconciled' }).body,
  'report.generated': reportMessage({
    id: UUID,
    periodFrom: '2026-05-01',
    periodTo: '2026-05-31',
    sections: ['summary', 'spend'],
    cause: 'schedule',
    cadence: 'monthly',
    sizeBytes: 160_000,
    generatedAtMicros: AT_MICROS,
    expiresAtMicros: AT_MICROS + 7_776_000_000_000n,
  }).body,
  'pricing.proposed': proposedMessage(
    UUID,
    'litellm',
    [
      { calls: 12, currentPico: 20_000_000_000_000n, proposedPico: 7_500_000_000_000n },
      { calls: 0, currentPico: null, proposedPico: null },
    ],
    AT_MICROS,
  ).body,
  'invoice.failed': invoiceMessage({ ...INVOICE, status: 'failed', failureCode: 'invoice_encrypted' }).body,
};

describe('docs/webhooks.md', () => {
  it('shows a message of each type as it is made', () => {
    expect(Object.keys(MADE).sort()).toEqual([...WEBHOOK_EVENT_TYPES].sort());
    for (const [type, body] of Object.entries(MADE))
      expect(JSON.parse(blockOf(`json ${type}`)), type).toEqual(JSON.parse(body));
    for (const type of MESSAGE_TYPES) expect(JSON.parse(blockOf(`json ${type}`)).type).toBe(type);
  });

  it('has a reader by hand that believes what a library believes, and nothing else', async () => {
    const code = Buffer.from(blockOf('js by hand')).toString('base64');
    const { readMessage } = (await import(/* @vite-ignore */ `data:text/javascript;base64,${code}`)) as {
      readMessage(secret: string, headers: Record<string, string>, body: string): unknown;
    };
    const [old, current, other] = [1, 2, 3].map((byte) => formatSecret(Buffer.alloc(SECRET_BYTES, byte))) as [
      string,
      string,
      string,
    ];
    const body = JSON.stringify({ type: 'webhook.test', data: { text: 'é' } });
    const timestampSeconds = Math.floor(Date.now() / 1_000);
    const headers = signMessage({ id: 'msg_1', timestampSeconds, body, secrets: [current, old] });
    for (const secret of [current, old]) {
      expect(readMessage(secret, headers, body)).toEqual(JSON.parse(body));
      expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body));
    }
    const late = signMessage({
      id: 'msg_1',
      timestampSeconds: timestampSeconds - 400,
      body,
      secrets: [current],
    });
    const wrong: [string, Record<string, string>, string][] = [
      [other, headers, body],
      [current, headers, `${body} `],
      [current, { ...headers, 'webhook-id': 'msg_2' }, body],
      [current, { ...headers, 'webhook-timestamp': String(timestampSeconds + 1) }, body],
      [current, { ...headers, 'webhook-signature': 'v1,' }, body],
      [current, { ...headers, 'webhook-signature': 'v1' }, body],
      [current, { 'webhook-id': 'msg_1' }, body],
      [current, late, body],
    ];
    for (const [secret, given, text] of wrong) {
      expect(() => readMessage(secret, given, text)).toThrow();
      expect(() => new Webhook(secret).verify(text, given)).toThrow();
    }
  });

  it('has the schedule, limits and times of the code', () => {
    const units = { s: 1, min: 60, h: 3_600 };
    const waits = [...PAGE.matchAll(/^\| \d+ \| (\d+) (s|min|h) \|$/gm)].map(
      ([, count, unit]) => Number(count) * units[unit as keyof typeof units],
    );
    expect(waits).toEqual(RETRY_DELAYS_SECONDS);
    const words = PAGE.replaceAll('\n', ' ');
    for (const said of [
      `An organization can have ${WEBHOOK_ENDPOINTS_MAX} endpoints`,
      `the latest ${ATTEMPTS_SHOWN_MAX} attempts`,
      `kept for ${WEBHOOK_MESSAGE_DAYS} days`,
      `the first ${ANSWER_CHARS_MAX.toLocaleString('en-US')} characters`,
      `default ${GRACE_SECONDS_DEFAULT.toLocaleString('en-US')}, at most ${GRACE_SECONDS_MAX.toLocaleString('en-US')}`,
      `${SECRET_BYTES} random bytes`,
    ])
      expect(words).toContain(said);
  });
});
