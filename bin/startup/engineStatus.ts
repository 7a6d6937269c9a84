import type { Config } from '../../platform/config.js';
import { isTemporalServing } from '../../platform/embedded/temporalHealth.js';

/** How long an answer about the workflow engine is good for. */
const ENGINE_STATUS_MS = 2_000;

/** Asks the engine at most every two seconds, however often /readyz is read. */
export function engineStatus(config: Config): () => Promise<'up' | 'degraded'> {
  const { temporalAddress } = config;
  let asked = Number.NEGATIVE_INFINITY;
  let answer: Promise<'up' | 'degraded'> = Promise.resolve('degraded');
  return () => {
    if (temporalAddress !== undefined && performance.now() - asked > ENGINE_STATUS_MS) {
      asked = performance.now();
      answer = isTemporalServing(temporalAddress).then((serving) => (serving ? 'up' : 'degraded'));
    }
    return answer;
  };
}
