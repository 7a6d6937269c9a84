import { isTemporalServing } from '../../platform/embedded/temporalHealth.js';

/** How long an answer about the workflow engine is good for. */
const ENGINE_STATUS_MS = 2_000;

/** Asks the engine, wherever it is now, at most every two seconds, however often /readyz is read. */
export function engineStatus(address: () => string | undefined): () => Promise<'up' | 'degraded'> {
  let asked = Number.NEGATIVE_INFINITY;
  let answer: Promise<'up' | 'degraded'> = Promise.resolve('degraded');
  return () => {
    const temporalAddress = address();
    if (temporalAddress !== undefined && performance.now() - asked > ENGINE_STATUS_MS) {
      asked = performance.now();
      answer = isTemporalServing(temporalAddress).then((serving) => (serving ? 'up' : 'degraded'));
    }
    return answer;
  };
}
