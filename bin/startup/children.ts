import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import type { Environment } from '../../platform/config.js';
import type { PartName, RuntimeFile } from '../../platform/runtimeFile.js';
import { type ChildMessage, SupervisedProcess } from '../../platform/supervision.js';

/** Word to the worker that something waits in the outbox. */
export const OUTBOX_MESSAGE = 'outbox';

/** Word to the API where the workflow engine is now: its address follows. */
export const ENGINE_MESSAGE = 'engine ';

/** The API and the worker as processes that are kept running, each the same program as in a cluster. */
export function createChildren(
  environment: (name: 'api' | 'worker') => Environment,
  runtime: RuntimeFile,
  logger: Logger,
): { api: SupervisedProcess; worker: SupervisedProcess } {
  const create = (name: PartName & ('api' | 'worker'), onMessage?: (message: ChildMessage) => void) => {
    const child: SupervisedProcess = new SupervisedProcess({
      name,
      script: fileURLToPath(
        new URL(`../${name}${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
      ),
      environment: () => environment(name),
      logger,
      onStatus: (status, detail) => runtime.set(name, { status, pid: child.pid, detail }),
      ...(onMessage ? { onMessage } : {}),
    });
    return child;
  };
  const worker = create('worker');
  const api = create('api', (message) => {
    if (message.type === 'outbox') worker.tell(OUTBOX_MESSAGE);
  });
  return { api, worker };
}
