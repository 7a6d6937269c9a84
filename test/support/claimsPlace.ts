import { Client, Connection, type WorkflowHandle } from '@temporalio/client';
import { inject } from 'vitest';
import { listClaimEvents } from '../../db/claims/claims.js';
import { findUuid, publicId } from '../../domain/ids.js';
import { claimWorkflowId } from '../../workflows/contract.js';
import { type RawAnswer, send } from '../api/support/requests.js';
import { startTestApi, type TestApi, type TestOrganization } from './api.js';
import { type ClaimToStore, storeClaim } from './claims.js';
import { createTestDatabase } from './database.js';
import { startTestEngine, type TestEngine, type TestEngineOptions, until } from './engine.js';
import { TEST_NAMESPACE } from './temporal.js';

export const CLAIMS = '/api/v1/claims';

/** Parts of a request besides its body. */
export interface MoveOptions {
  key?: string | null;
  /** Idempotency-Key. */
  once?: string;
}

export interface ClaimsPlace {
  api: TestApi;
  engine: TestEngine;
  client: Client;
  /** A claim of the organization, stored; its public id. */
  aClaim(given?: ClaimToStore, org?: TestOrganization): Promise<string>;
  submit(id: string, options?: MoveOptions): Promise<RawAnswer>;
  patch(id: string, body: unknown, options?: MoveOptions): Promise<RawAnswer>;
  // biome-ignore lint/suspicious/noExplicitAny: an answer that the API's own schemas have checked
  get(id: string): Promise<any>;
  /** The statuses that it went through, as its history in the database has them. */
  historyOf(id: string): Promise<string[]>;
  handleOf(id: string): WorkflowHandle;
  close(): Promise<void>;
}

export const uuidOf = (id: string): string => findUuid('clm', id) ?? '';

/** Retries as clients do when Temporal does not answer; until then the claim is unchanged. */
export const untilMoved = <T extends { status: number; body: { code?: string } }>(
  ask: () => Promise<T>,
): Promise<T> =>
  until(
    'an answer of the engine',
    ask,
    ({ status, body }) => status !== 503 || body.code !== 'workflow_engine_unavailable',
  );

/**
 * The API and Temporal for claims. No worker is started. `asksAgain`: retries moves, for tests that do not prove how
 * fast a machine moves a claim, which the API gives up after some seconds.
 */
export async function startClaimsPlace(
  options: { engine?: TestEngineOptions; asksAgain?: boolean } & NonNullable<
    Parameters<typeof startTestApi>[0]
  > = {},
): Promise<ClaimsPlace> {
  const database = await createTestDatabase({ poolMax: 16 });
  const engine = await startTestEngine(database.database, options.engine);
  const api = await startTestApi({
    moveClaim: (input, command) => engine.orchestrator.moveClaim(input, command),
    ...options,
    database,
  });
  const address = options.engine?.address ?? inject('temporalAddress');
  const connection = await Connection.connect({ address });
  const client = new Client({ connection, namespace: TEST_NAMESPACE });
  const moveOnce = (method: string, path: string, body: unknown, { key, once }: MoveOptions = {}) =>
    send(api, {
      method,
      path: `${CLAIMS}/${path}`,
      ...(key === undefined ? {} : { key }),
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(once === undefined ? {} : { 'idempotency-key': once }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const move: typeof moveOnce = (...given) =>
    options.asksAgain ? untilMoved(() => moveOnce(...given)) : moveOnce(...given);
  return {
    api,
    engine,
    client,
    aClaim: async (given, org = api) => publicId('clm', (await storeClaim(org.orgDb, given)).id),
    submit: (id, given) => move('POST', `${id}/submit`, undefined, given),
    patch: (id, body, given) => move('PATCH', `${id}/status`, body, given),
    get: async (id) => (await api.get(`${CLAIMS}/${id}`)).body,
    historyOf: async (id) => (await listClaimEvents(api.orgDb, uuidOf(id))).map(({ to }) => to),
    handleOf: (id) => client.workflow.getHandle(claimWorkflowId({ orgId: api.orgId, claimId: uuidOf(id) })),
    async close() {
      await api.close();
      await engine.close();
      await connection.close();
      await database.close();
    },
  };
}
