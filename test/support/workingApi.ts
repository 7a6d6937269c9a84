import { startTestApi, type TestApi } from './api.js';
import { startTestEngine, type TestEngineOptions } from './engine.js';

/**
 * The API with an engine and a worker behind it: the runs that it accepts are done. Both read bills by the same
 * connectors. `close` ends all three.
 */
export async function startWorkingApi(options: TestEngineOptions = {}): Promise<TestApi> {
  const api = await startTestApi(options.connectors ? { connectors: options.connectors } : {});
  const engine = await startTestEngine(api.database.database, options);
  await engine.startWorker();
  return {
    ...api,
    close: async () => {
      await engine.close();
      await api.close();
    },
  };
}
