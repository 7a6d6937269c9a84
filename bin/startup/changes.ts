import type { Logger } from 'pino';

/** Says that changes of keys and settings are seen late, once until they are seen at once again. */
export function warnOfLostFeed(logger: Logger): (error: unknown) => void {
  return (error) =>
    logger.warn(
      { err: error },
      'changes of keys are not told at present; a revocation holds after 5 seconds at most',
    );
}
