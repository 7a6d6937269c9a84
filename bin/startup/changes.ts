import type { Logger } from 'pino';
import { ChangeFeed } from '../../db/changeFeed.js';

/** The feed of changes, not started yet; it says when it is lost and when it is back. */
export function openChangeFeed(directUrl: string, logger: Logger): ChangeFeed {
  return new ChangeFeed({
    directUrl,
    onLost: (error) =>
      logger.warn(
        { err: error },
        'changes of keys are not told; a revocation holds after five seconds at most',
      ),
    onBack: () => logger.info('changes of keys are told again'),
  });
}
