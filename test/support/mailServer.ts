import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';
import { type DeliverMail, smtpMailer } from '../../adapters/mail/smtpMailer.js';

export interface ReceivedMail {
  from: string;
  to: string[];
  /** As it came. */
  raw: string;
  /** Unfolded headers by their name in lower case. */
  headers: Record<string, string>;
  /** The body with quoted-printable decoded. */
  body: string;
}

export interface MailServer {
  url: string;
  received: ReceivedMail[];
  /** The answer to RCPT TO; undefined: accepted. `silent`: no answer at all. */
  refuseWith(reply: { code: number; text: string } | 'silent' | undefined): void;
  /** A client of it whose attempts end soon. */
  mailer(totalMs?: number): DeliverMail;
  close(): Promise<void>;
}

/** A mail server on loopback. */
export async function startMailServer(): Promise<MailServer> {
  const received: ReceivedMail[] = [];
  let refusal: { code: number; text: string } | 'silent' | undefined;
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    logger: false,
    onRcptTo(_address, _session, done) {
      if (refusal === 'silent') return;
      if (refusal) done(Object.assign(new Error(refusal.text), { responseCode: refusal.code }));
      else done();
    },
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope;
        const raw = Buffer.concat(chunks).toString('utf8');
        received.push({
          from: mailFrom ? mailFrom.address : '',
          to: rcptTo.map(({ address }) => address),
          raw,
          ...readMail(raw),
        });
        done();
      });
    },
  });
  server.on('error', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `smtp://127.0.0.1:${(server.server.address() as AddressInfo).port}`;
  return {
    url,
    received,
    refuseWith: (reply) => {
      refusal = reply;
    },
    mailer: (totalMs = 5_000) =>
      smtpMailer(
        { url, from: { name: 'Trueup', address: 'trueup@example.com' } },
        { nowMs: () => performance.now() },
        { totalMs },
      ),
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

function readMail(raw: string): Pick<ReceivedMail, 'headers' | 'body'> {
  const end = raw.indexOf('\r\n\r\n');
  const lines = raw
    .slice(0, end)
    .replace(/\r\n[ \t]+/g, ' ')
    .split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => [
      line.slice(0, line.indexOf(':')).toLowerCase(),
      line.slice(line.indexOf(':') + 1).trim(),
    ]),
  );
  const body = raw
    .slice(end)
    .replace(/=\r\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return { headers, body };
}
