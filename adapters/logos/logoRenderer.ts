import { fileURLToPath } from 'node:url';
import { DomainError } from '../../domain/errors.js';
import { Places } from '../../domain/places.js';
import { type ChildLimits, startLimited } from '../invoices/limitedChild.js';
import type { DrawnLogo } from './drawLogo.js';
import type { LogoJob, LogoMessage } from './logoProgram.js';

/** Draws a PNG or SVG file again. Errors invalid_logo, unsupported_media_type, service_unavailable (too many wait). */
export type RenderLogo = (file: Buffer) => Promise<DrawnLogo>;

const LIMITS: ChildLimits = {
  dataMegabytesMax: 384,
  heapMegabytesMax: 128,
  cpuSecondsMax: 8,
  silenceMsMax: 60_000,
  usePrlimit: true,
};
const AT_ONCE = 2;
const WAITING_MAX = 16;

/** Without a build the sources themselves run. */
const IS_BUILT = !import.meta.url.endsWith('.ts');
const PROGRAM = fileURLToPath(new URL(`./logoProgram.${IS_BUILT ? 'js' : 'ts'}`, import.meta.url));

export function createLogoRenderer(limits: Partial<ChildLimits> = {}): RenderLogo {
  const places = new Places(AT_ONCE, WAITING_MAX);
  return (file) => places.use(undefined, () => renderLogo(file, { ...LIMITS, ...limits }));
}

async function renderLogo(file: Buffer, limits: ChildLimits): Promise<DrawnLogo> {
  let drawn: DrawnLogo | undefined;
  const onMessage = (message: LogoMessage) => {
    if (message.is === 'failed') throw new DomainError(message.code, message.sentence);
    drawn = message;
    return true;
  };
  await startLimited<LogoJob, LogoMessage>(PROGRAM, limits)
    .run({ file }, { onMessage })
    .catch((error: unknown) => {
      if (!(error instanceof DomainError) || error.code !== 'resource_limit') throw error;
      throw new DomainError('invalid_logo', 'the logo takes too much time or memory to draw: simplify it');
    });
  if (!drawn) throw new Error('a child that has ended well has sent the logo');
  return drawn;
}
