/**
 * A process of its own that draws one logo under limits and ends. It takes one message, the file, and has neither
 * settings nor secrets.
 */
import { DomainError, type ErrorCode } from '../../domain/errors.js';
import type { ReadyMessage } from '../invoices/limitedChild.js';
import { type DrawnLogo, drawLogo } from './drawLogo.js';

export interface LogoJob {
  file: Uint8Array;
}

export type LogoMessage = ({ is: 'drawn' } & DrawnLogo) | { is: 'failed'; code: ErrorCode; sentence: string };

// The parent has ended and sends no signals any more.
process.once('disconnect', () => process.kill(-process.pid, 'SIGKILL'));

process.once('message', async ({ file }: LogoJob) => {
  const message = await drawLogo(Buffer.from(file)).then(asDrawn, asFailed);
  process.send?.(message, () => process.exit(0));
});
process.send?.({ is: 'ready' } satisfies ReadyMessage);

function asDrawn(logo: DrawnLogo): LogoMessage {
  return { is: 'drawn', ...logo };
}

function asFailed(error: unknown): LogoMessage {
  if (error instanceof DomainError) return { is: 'failed', code: error.code, sentence: error.message };
  return { is: 'failed', code: 'invalid_logo', sentence: 'the logo cannot be drawn: export it again' };
}
