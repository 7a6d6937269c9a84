import { Client, Connection } from '@temporalio/client';
import { inject } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.js';
import { startTestEngine, type TestEngine, type TestEngineOptions } from '../support/engine.js';
import { TEST_NAMESPACE } from '../support/temporal.js';

/** A client of the suite's Temporal server; the caller closes its connection. */
export async function connectClient(): Promise<{ client: Client; connection: Connection }> {
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  return { client: new Client({ connection, namespace: TEST_NAMESPACE }), connection };
}

/**
 * The API, Temporal with workers that each recording replaces, and a client that reads the histories of their
 * workflows.
 */
export async function startRecording(
  options: TestEngineOptions = {},
): Promise<{ api: TestApi; engine: TestEngine; client: Client; close(): Promise<void> }> {
  const api = await startTestApi();
  const engine = await startTestEngine(api.database.database, options);
  const { client, connection } = await connectClient();
  const close = async () => {
    await connection.close();
    await engine.close();
    await api.close();
  };
  return { api, engine, client, close };
}
