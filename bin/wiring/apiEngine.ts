import { type MoveAnswer, TemporalOrchestrator } from '../../adapters/orchestrator.js';
import type { ApiDeps } from '../../api/deps.js';
import type { Config } from '../../platform/config.js';
import { isTemporalServing } from '../../platform/embedded/temporalHealth.js';
import { ENGINE_MESSAGE } from '../service/service.js';

/** The workflow engine as the API asks it. */
export interface ApiEngine extends Pick<ApiDeps, 'moveClaim'> {
  /** Where it is now; undefined where nobody has said so. */
  address(): string | undefined;
  close(): Promise<void>;
}

/** At the address that the settings name, and at each that the supervisor tells later: an embedded engine may move. */
export function openApiEngine({ temporalAddress, temporalNamespace: namespace }: Config): ApiEngine {
  const open = (at: string) =>
    new TemporalOrchestrator({ address: at, namespace, nowMs: () => performance.now() });
  let address = temporalAddress;
  let orchestrator = address === undefined ? undefined : open(address);
  const moveTo = (message: unknown) => {
    if (typeof message !== 'string' || !message.startsWith(ENGINE_MESSAGE)) return;
    const told = message.slice(ENGINE_MESSAGE.length);
    if (told === address) return;
    address = told;
    // What is under way there fails by itself; its caller asks again.
    void orchestrator?.close().catch(() => undefined);
    orchestrator = open(told);
  };
  process.on('message', moveTo);
  return {
    address: () => address,
    moveClaim: async (input, command): Promise<MoveAnswer> =>
      orchestrator ? orchestrator.moveClaim(input, command) : { kind: 'unsent' },
    async close() {
      process.off('message', moveTo);
      await orchestrator?.close();
    },
  };
}

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
