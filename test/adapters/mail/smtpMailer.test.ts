import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { MailToDeliver } from '../../../adapters/mail/smtpMailer.js';
import { type MailServer, startMailServer } from '../../support/mailServer.js';

let server: MailServer;
beforeAll(async () => {
  server = await startMailServer();
});
beforeEach(() => {
  server.refuseWith(undefined);
  server.received.length = 0;
});
afterAll(() => server?.close());

const MAIL: MailToDeliver = {
  to: 'finance@example.com',
  subject: 'Trueup: a claim was drafted ($8,493.12)',
  text: 'A claim was drafted.\n',
  html: '<p>A claim was drafted.</p>',
  messageId: '<dlv_1@trueup.test>',
  date: new Date('2026-06-19T00:00:00Z'),
  unsubscribeUrl: 'https://trueup.test/unsubscribe?token=abc',
};

describe('a mail', () => {
  it('has both parts, the header of one-click unsubscription and its own id', async () => {
    const outcome = await server.mailer()(MAIL);
    expect(outcome).toMatchObject({ result: 'delivered', httpStatus: 250, error: null });
    const [mail] = server.received;
    expect(mail).toMatchObject({ from: 'trueup@example.com', to: ['finance@example.com'] });
    expect(mail?.headers).toMatchObject({
      from: 'Trueup <trueup@example.com>',
      to: 'finance@example.com',
      subject: MAIL.subject,
      'message-id': MAIL.messageId,
      date: 'Fri, 19 Jun 2026 00:00:00 +0000',
      'list-unsubscribe': '<https://trueup.test/unsubscribe?token=abc>',
      'list-unsubscribe-post': 'List-Unsubscribe=One-Click',
      'auto-submitted': 'auto-generated',
    });
    expect(mail?.headers['content-type']).toMatch(/^multipart\/alternative/);
    expect(mail?.body).toContain('A claim was drafted.\r\n');
    expect(mail?.body).toContain('<p>A claim was drafted.</p>');
  });

  it('carries an attachment byte for byte', async () => {
    const content = Buffer.from(Array.from({ length: 3_000 }, (_, at) => at % 256));
    const attachment = { filename: 'report.pdf', contentType: 'application/pdf', content };
    expect((await server.mailer()({ ...MAIL, attachment })).result).toBe('delivered');
    const raw = server.received[0]?.raw ?? '';
    expect(raw).toContain('Content-Disposition: attachment; filename=report.pdf');
    expect(raw.replaceAll('\r\n', '')).toContain(content.toString('base64'));
  });

  it.each(['A\r\nBcc: evil@example.com', 'A\nX-Injected: 1', 'A\u2028B\0C\rD'])(
    'keeps the subject %j in one header',
    async (subject) => {
      await server.mailer()({ ...MAIL, subject });
      const [mail] = server.received;
      expect(mail?.to).toEqual(['finance@example.com']);
      expect(Object.keys(mail?.headers ?? {})).not.toContain('bcc');
      expect(Object.keys(mail?.headers ?? {})).not.toContain('x-injected');
    },
  );

  it.each([
    'a@example.com\r\nRCPT TO:<evil@example.com>',
    'a@example.com, evil@example.com',
    'a@example.com> SIZE=1\r\nDATA',
  ])('never reaches another address through %j', async (to) => {
    await server.mailer()({ ...MAIL, to });
    expect(server.received.flatMap((mail) => mail.to)).not.toContain('evil@example.com');
  });
});

describe('a refusal', () => {
  it('with 451 can be repeated', async () => {
    server.refuseWith({ code: 451, text: 'try again later' });
    const outcome = await server.mailer()(MAIL);
    expect(outcome).toMatchObject({ result: 'failed', httpStatus: 451, isFinal: false });
    expect(outcome.answer).toContain('try again later');
  });

  it('with 550 is final', async () => {
    server.refuseWith({ code: 550, text: 'no such user' });
    expect(await server.mailer()(MAIL)).toMatchObject({
      ...{ result: 'failed', httpStatus: 550, isFinal: true },
      error: 'the mail server answered 550, which is final',
    });
  });

  it('by silence ends in time', async () => {
    server.refuseWith('silent');
    expect(await server.mailer(300)(MAIL)).toMatchObject({
      ...{ result: 'failed', httpStatus: null, isFinal: false },
      error: 'the mail server did not answer in time',
    });
  });

  it('of the connection names no address', async () => {
    const closed = await startMailServer();
    await closed.close();
    const outcome = await closed.mailer()(MAIL);
    expect(outcome).toMatchObject({ result: 'failed', httpStatus: null });
    expect(outcome.error).toMatch(/^the mail server cannot be reached \([A-Z]+\)$/);
  });

  it('ends with the process that asks for it', async () => {
    server.refuseWith('silent');
    const outcome = await server.mailer()({ ...MAIL, signal: AbortSignal.timeout(100) });
    expect(outcome).toMatchObject({ result: 'failed', httpStatus: null, error: 'the mail was cancelled' });
  });
});
