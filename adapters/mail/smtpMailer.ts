import { createTransport } from 'nodemailer';
import { isMailAddress } from '../../domain/webhooks/mailAddress.js';
import { ANSWER_CHARS_MAX, type AttemptOutcome } from '../../domain/webhooks/retrySchedule.js';
import type { DeliveryClock } from '../outbound/deliverWebhook.js';

/** Longest time of an attempt, with an attachment, milliseconds. */
export const MAIL_TOTAL_MS = 45_000;
/** Longest time without a word of the mail server, milliseconds. */
const SILENCE_MS = 15_000;

export interface MailSettings {
  /** `smtp://` or `smtps://`, perhaps with user and password. */
  url: string;
  from: { name: string; address: string };
}

export interface MailToDeliver {
  to: string;
  subject: string;
  text: string;
  html: string;
  /** The same at every attempt: `<…@…>`. */
  messageId: string;
  /** Time of the event, so that every attempt has the same Date. */
  date: Date;
  /** Address whose POST ends these mails (RFC 8058). */
  unsubscribeUrl: string;
  attachment?: { filename: string; contentType: string; content: Buffer } | undefined;
  signal?: AbortSignal | undefined;
}

/** Makes one attempt. Any answer of the mail server is an outcome. */
export type DeliverMail = (mail: MailToDeliver) => Promise<AttemptOutcome>;

/** Sends mails by one SMTP server, each over a connection of its own. */
export function smtpMailer(
  { url, from }: MailSettings,
  clock: Pick<DeliveryClock, 'nowMs'>,
  { totalMs = MAIL_TOTAL_MS, silenceMs = SILENCE_MS } = {},
): DeliverMail {
  const server = new URL(url);
  const host = server.hostname.replace(/^\[|\]$/g, '');
  const secure = server.protocol === 'smtps:';
  const hasLogin = server.username !== '';
  const transport = createTransport({
    host,
    port: server.port === '' ? (secure ? 465 : 587) : Number(server.port),
    secure,
    // A password never leaves this machine in the clear.
    requireTLS: hasLogin && !isLoopback(host),
    ...(hasLogin
      ? { auth: { user: decodeURIComponent(server.username), pass: decodeURIComponent(server.password) } }
      : {}),
    connectionTimeout: silenceMs,
    greetingTimeout: silenceMs,
    socketTimeout: silenceMs,
    dnsTimeout: silenceMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return async (mail) => {
    const startedMs = clock.nowMs();
    const deadline = AbortSignal.timeout(totalMs);
    const signal = mail.signal ? AbortSignal.any([mail.signal, deadline]) : deadline;
    const outcomeOf = (rest: Omit<AttemptOutcome, 'durationMs' | 'retryAfterSeconds'>): AttemptOutcome => ({
      ...rest,
      retryAfterSeconds: null,
      durationMs: Math.round(clock.nowMs() - startedMs),
    });
    // nodemailer would read several addresses in one text.
    if (!isMailAddress(mail.to)) return outcomeOf(NO_ADDRESS);
    try {
      const { response } = await transport.sendMail({ ...messageOf(from, mail), signal });
      return outcomeOf({
        result: 'delivered',
        httpStatus: Number(/^\d{3}/.exec(response)?.[0] ?? 250),
        error: null,
        answer: shown(response),
      });
    } catch (error) {
      if (mail.signal?.aborted)
        return outcomeOf({
          result: 'failed',
          httpStatus: null,
          error: 'the mail was cancelled',
          answer: null,
        });
      return outcomeOf(failureOf(error, deadline.aborted));
    }
  };
}

const NO_ADDRESS = {
  result: 'failed',
  httpStatus: null,
  error: 'the recipient is not one mail address',
  answer: null,
  isFinal: true,
} as const;

/** nodemailer encodes or removes line breaks in headers. */
function messageOf(from: MailSettings['from'], mail: MailToDeliver) {
  return {
    from,
    to: { name: '', address: mail.to },
    envelope: { from: from.address, to: [mail.to] },
    subject: mail.subject,
    text: mail.text,
    html: mail.html,
    messageId: mail.messageId,
    date: mail.date,
    headers: {
      'List-Unsubscribe': `<${mail.unsubscribeUrl}>`,
      'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
      'Auto-Submitted': 'auto-generated',
    },
    attachments: mail.attachment ? [mail.attachment] : [],
  };
}

/** Commands whose refusal is about this mail; a refused greeting or login is about the connection. */
const ABOUT_THE_MAIL = /^(?:MAIL FROM|RCPT TO|DATA)/;

function failureOf(
  error: unknown,
  isLate: boolean,
): Omit<AttemptOutcome, 'durationMs' | 'retryAfterSeconds'> {
  const { code, responseCode, response, command } = error as {
    [name in 'code' | 'response' | 'command']?: string;
  } & { responseCode?: number };
  if (responseCode !== undefined) {
    const isFinal = responseCode >= 500 && ABOUT_THE_MAIL.test(command ?? '');
    return {
      result: 'failed',
      httpStatus: responseCode,
      error: `the mail server answered ${responseCode}${isFinal ? ', which is final' : ''}`,
      answer: shown(response ?? ''),
      isFinal,
    };
  }
  const reason =
    isLate || code === 'ETIMEDOUT'
      ? 'the mail server did not answer in time'
      : `the mail server cannot be reached${/^[A-Z]{2,20}$/.test(code ?? '') ? ` (${code})` : ''}`;
  return { result: 'failed', httpStatus: null, error: reason, answer: null, isFinal: code === 'EENVELOPE' };
}

function shown(answer: string): string | null {
  const text = answer.replace(/\p{Cc}+/gu, ' ').trim();
  return text === '' ? null : text.slice(0, ANSWER_CHARS_MAX).toWellFormed();
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);
}
