import { randomUUID } from 'node:crypto';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { testConnectors } from '../../support/connectors.js';
import {
  addressOf,
  bodyOf,
  type Operation,
  type OperationRequest,
  type OperationsPlace,
} from './operations/operation.js';
import { startOperationsPlace } from './operations.js';
import { type ProviderGate, startProviderGate } from './providerGate.js';
import { type RawAnswer, send } from './requests.js';

/** Two API processes over one database, with a gate in front of the provider that both call. */
export interface RepeatsPlace {
  place: OperationsPlace;
  gate: ProviderGate;
  one: TestApi;
  other: TestApi;
  close(): Promise<void>;
}

export async function startRepeatsPlace(): Promise<RepeatsPlace> {
  let target = '';
  const gate = await startProviderGate(() => target);
  const connectors = testConnectors({ openai: gate.origin });
  const place = await startOperationsPlace({ connectors });
  target = place.openai.origin;
  const one = place.api;
  const other = await startTestApi({ database: one.database, connectors });
  return {
    place,
    gate,
    one,
    other,
    close: async () => {
      await other.close();
      await place.close();
      await gate.close();
    },
  };
}

export const aKey = () => randomUUID();

export interface Sent {
  owner: Pick<TestOrganization, 'adminKey'>;
  key?: string | undefined;
  query?: string;
  api: TestApi;
}

/** Sends one operation's request, under an Idempotency-Key if given. */
export function perform(
  operation: Pick<Operation, 'method' | 'path'>,
  request: OperationRequest,
  { owner, key, query = '', api }: Sent,
): Promise<RawAnswer> {
  const { headers = {}, ...body } = bodyOf(request);
  const path = addressOf(operation as Operation, request);
  return send(api, {
    method: operation.method,
    path: query === '' ? path : `${path}${path.includes('?') ? '&' : '?'}${query}`,
    key: owner.adminKey,
    headers: { ...headers, ...(key === undefined ? {} : { 'idempotency-key': key }) },
    ...body,
  });
}

export const overrideOf = (model: string) => ({
  json: { provider: 'openai', model, rates: { input: 1, output: 2 }, effective_from: '2026-01-01' },
});
export const override = { method: 'POST', path: '/api/v1/pricing/overrides' } as const;
export const startRun = { method: 'POST', path: '/api/v1/reconciliation/gap-explorer/run' } as const;

/** The parts of an answer that its repeat must equal. */
export const seenOf = ({ status, headers, bytes }: RawAnswer) => ({
  status,
  type: headers['content-type'],
  location: headers.location,
  retryAfter: headers['retry-after'],
  text: bytes.toString(),
});
