import { describe, expect, it } from 'vitest';
import { DIGEST_LINES_MAX, digestBody, digestTimes } from '../../../domain/webhooks/digest.js';
import { isMailAddress } from '../../../domain/webhooks/mailAddress.js';
import { hookBody, mailParts, type ShownNotice } from '../../../domain/webhooks/noticeFormats.js';
import { noticeOf, type StoredMessage } from '../../../domain/webhooks/notices.js';

const BASE = { baseUrl: 'https://costs.example.com' };
const of = (type: StoredMessage['type'], data: StoredMessage['data']) =>
  noticeOf({ type, timestamp: '2026-06-19T00:00:00Z', data }, BASE);

describe('the notice of a message', () => {
  it('is a sentence, the amount and a link', () => {
    const claim = { claim_id: 'clm_1', provider: 'openai', total_recoverable_cents: 849_312 };
    expect(of('claim.created', { ...claim, period_start: '2026-05-04', period_end: '2026-05-17' })).toEqual({
      sentence: 'A claim against openai for 2026-05-04 to 2026-05-17 was drafted.',
      amount: '$8,493.12',
      link: 'https://costs.example.com/api/v1/claims/clm_1',
    });
    expect(
      of('claim.reminder', {
        ...{ ...claim, status: 'submitted_to_provider', since: '2026-06-14T00:00:00Z', action: 'remind' },
      }).sentence,
    ).toBe('A claim against openai has waited as submitted to provider since 2026-06-14: ask for an answer.');
    expect(
      of('claim.status_changed', {
        ...{ ...claim, previous_status: 'under_review', status: 'partial', credit_issued_cents: 800_000 },
      }),
    ).toMatchObject({
      sentence: 'A claim against openai is now partial; it was under review.',
      amount: '$8,000.00',
    });
    const dispute = { dispute_id: 'dsp_1', provider: 'openai', kind: 'minimum_charge', amount_cents: 5 };
    expect(
      of('dispute.opened', { ...dispute, period_start: '2026-05-04', period_end: '2026-05-17' }),
    ).toMatchObject({ amount: '$0.05', sentence: expect.stringContaining('minimum charge') });
    expect(of('dispute.resolved', { ...dispute, resolution: 'credit_received' }).sentence).toBe(
      'A dispute with openai was resolved: credit received.',
    );
    const run = { run_id: 'run_1', period: '30d', provider: null, total: 120, flagged: 3 };
    expect(of('gap_run.completed', { ...run, status: 'succeeded' }).sentence).toBe(
      'The comparison of all providers over 30d has ended: 3 of 120 lines are gaps.',
    );
    expect(of('gap_run.completed', { ...run, status: 'failed', total: null }).sentence).toBe(
      'The comparison of all providers over 30d ended as failed.',
    );
    const invoice = { invoice_id: 'inv_1', provider: 'anthropic', number: 'A-12' };
    expect(
      of('invoice.processed', { ...invoice, status: 'reconciled', total: '1204.5', currency: 'EUR' }),
    ).toMatchObject({
      sentence: 'The invoice A-12 of anthropic was read and agrees with the bill.',
      amount: '1,204.50 EUR',
    });
    expect(
      of('invoice.failed', { ...invoice, number: null, failure_code: 'invoice_encrypted' }).sentence,
    ).toBe('The invoice of anthropic cannot be read: invoice encrypted.');
    expect(
      of('report.generated', {
        ...{ report_id: 'rpt_1', cadence: 'monthly', period_from: '2026-05-01', period_to: '2026-05-31' },
      }).sentence,
    ).toBe('The monthly report for 2026-05-01 to 2026-05-31 is ready.');
  });

  it('of an alert is the alert’s own sentence and the cost of its call, on one line', () => {
    const message = {
      ...{ type: 'alert.created' as const, timestamp: '' },
      data: { alert_id: 'alr_1', severity: 'high', kind: 'policy', policy_type: 'approved_models' },
    };
    const alert = { message: 'gpt-4o is not approved.\r\nBcc: a@b.c\u202e', costPico: 12_340_000_000n };
    expect(noticeOf(message, { ...BASE, alert })).toMatchObject({
      sentence: 'Alert (high): gpt-4o is not approved. Bcc: a@b.c',
      amount: '$0.01',
    });
    expect(noticeOf(message, BASE)).toMatchObject({
      sentence: 'Alert (high): a call broke the policy approved models.',
      amount: null,
    });
  });
});

const HOSTILE: ShownNotice = {
  sentence: '<!channel> & [link](http://evil.example) *bold* <script>',
  amount: '$1.00',
  link: 'https://costs.example.com/api/v1/claims/clm_1',
  lines: [],
  more: 0,
};

describe('a format', () => {
  it('of Slack escapes the three characters that control it', () => {
    const body = JSON.parse(hookBody('slack', HOSTILE));
    expect(body.text).toBe(
      '&lt;!channel&gt; &amp; [link](http://evil.example) *bold* &lt;script&gt; ($1.00)',
    );
    expect(body.blocks).toEqual([
      { type: 'section', text: { type: 'mrkdwn', text: body.text, verbatim: true } },
      {
        type: 'context',
        elements: [{ type: 'mrkdwn', text: `<${HOSTILE.link}|Open in Trueup>`, verbatim: true }],
      },
    ]);
  });

  it('of Slack keeps every text within its length, and all lines of a digest', () => {
    const lines = Array.from({ length: DIGEST_LINES_MAX }, (_, at) => ({
      ...HOSTILE,
      sentence: `${at}: ${'&'.repeat(200)}`,
    }));
    const { blocks } = JSON.parse(hookBody('slack', { ...HOSTILE, lines, more: 7 }));
    const texts: string[] = blocks.flatMap(({ text }: { text?: { text: string } }) => text?.text ?? []);
    expect(Math.max(...texts.map((text) => text.length))).toBeLessThanOrEqual(3_000);
    expect(blocks.length).toBeLessThanOrEqual(50);
    for (const at of lines.keys()) expect(texts.join('\n')).toContain(`• ${at}: `);
    expect(texts.at(-1)).toMatch(/\nand 7 more$/);
  });

  it('of Teams is a card whose texts are not Markdown', () => {
    const { type, attachments } = JSON.parse(hookBody('teams', HOSTILE));
    expect([type, attachments[0].contentType]).toEqual([
      'message',
      'application/vnd.microsoft.card.adaptive',
    ]);
    expect(attachments[0].content).toMatchObject({
      ...{ type: 'AdaptiveCard', version: '1.2' },
      body: [
        { type: 'RichTextBlock', inlines: [{ type: 'TextRun', text: HOSTILE.sentence }] },
        { type: 'RichTextBlock', inlines: [{ type: 'TextRun', text: '$1.00' }] },
      ],
      actions: [{ type: 'Action.OpenUrl', url: HOSTILE.link }],
    });
  });

  it('of a mail escapes markup and has the link that ends it', () => {
    const { subject, text, html } = mailParts(HOSTILE, 'https://costs.example.com/unsubscribe#t');
    expect(subject).toBe(`Trueup: ${HOSTILE.sentence} ($1.00)`);
    expect(text).toContain(HOSTILE.sentence);
    expect(text).toContain('https://costs.example.com/unsubscribe#t');
    expect(html).not.toContain('<script>');
    expect(html).toContain('&lt;script&gt;');
    expect(html).toContain('href="https://costs.example.com/unsubscribe#t"');
    const long = mailParts({ ...HOSTILE, sentence: 'ü'.repeat(600) }, '').subject;
    expect(Array.from(long)).toHaveLength(150);
  });
});

describe('a mail address', () => {
  it.each(['a@example.com', "o'neil+costs@mail.example.co"])('may be %s', (address) => {
    expect(isMailAddress(address)).toBe(true);
  });

  it.each([
    ...[
      'a',
      'a@b',
      '@example.com',
      'a@example.com ',
      'a@example.com\r\nBcc: b@example.com',
      'a b@example.com',
    ],
    ...['a@example.com,b@example.com', 'A <a@example.com>', '"a b"@example.com', 'a@-example.com'],
    ...[`${'a'.repeat(65)}@example.com`, `a@${'b'.repeat(60)}.${'c'.repeat(200)}.com`, 'ü@example.com'],
  ])('may not be %j', (address) => {
    expect(isMailAddress(address)).toBe(false);
  });
});

const micros = (iso: string) => BigInt(Date.parse(iso)) * 1_000n;

describe('a digest', () => {
  it('is due at 8 local time, also on the days on which the clock changes', () => {
    const at = (iso: string) => {
      const { lastMicros, nextMicros } = digestTimes('Europe/Berlin', micros(iso));
      return [lastMicros, nextMicros].map((time) => new Date(Number(time / 1_000n)).toISOString());
    };
    expect(at('2026-03-28T22:30:00Z')).toEqual(['2026-03-28T07:00:00.000Z', '2026-03-29T06:00:00.000Z']);
    expect(at('2026-03-29T05:59:59Z')).toEqual(['2026-03-28T07:00:00.000Z', '2026-03-29T06:00:00.000Z']);
    expect(at('2026-03-29T06:00:00Z')).toEqual(['2026-03-29T06:00:00.000Z', '2026-03-30T06:00:00.000Z']);
    expect(at('2026-10-25T06:59:59Z')).toEqual(['2026-10-24T06:00:00.000Z', '2026-10-25T07:00:00.000Z']);
    expect(at('2026-10-25T07:00:00Z')).toEqual(['2026-10-25T07:00:00.000Z', '2026-10-26T07:00:00.000Z']);
  });

  it('comes once a local day in every zone, a year long', () => {
    for (const zone of [
      'UTC',
      'America/New_York',
      'Australia/Lord_Howe',
      'Pacific/Kiritimati',
      'Asia/Kolkata',
    ]) {
      let { nextMicros } = digestTimes(zone, micros('2026-01-01T12:00:00Z'));
      const hours = new Intl.DateTimeFormat('en-GB', { timeZone: zone, hour: 'numeric', minute: 'numeric' });
      for (let day = 0; day < 365; day += 1) {
        expect(hours.format(new Date(Number(nextMicros / 1_000n)))).toBe('08:00');
        const after = digestTimes(zone, nextMicros);
        expect(after.lastMicros).toBe(nextMicros);
        expect(Number((after.nextMicros - nextMicros) / 3_600_000_000n)).toBeGreaterThanOrEqual(23);
        expect(Number((after.nextMicros - nextMicros) / 3_600_000_000n)).toBeLessThanOrEqual(25);
        nextMicros = after.nextMicros;
      }
    }
  });

  it('has the first lines, cut, and the count of all', () => {
    const line = { ...HOSTILE, message_id: 'msg_1', type: 'alert.created', sentence: 'x'.repeat(600) };
    const notices = Array.from({ length: DIGEST_LINES_MAX + 5 }, () => line);
    const { data } = JSON.parse(digestBody('', { webhook_endpoint_id: 'whk_1', count: 999, notices }));
    expect(data.count).toBe(999);
    expect(data.notices).toHaveLength(DIGEST_LINES_MAX);
    expect(data.notices[0].sentence).toHaveLength(240);
  });
});
