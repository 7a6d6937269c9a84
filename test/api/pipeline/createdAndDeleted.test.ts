import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ENDPOINTS } from '../../../api/app.js';
import { buildOpenApi } from '../../../api/openapi.js';
import {
  addressOf,
  bodyOf,
  type Operation,
  type OperationRequest,
  type OperationsPlace,
} from '../support/operations/operation.js';
import { OPERATIONS, startOperationsPlace } from '../support/operations.js';
import { send } from '../support/requests.js';

interface DocumentedResponse {
  headers?: Record<string, unknown>;
  content?: Record<string, unknown>;
}

interface DocumentedOperation {
  operationId: string;
  responses: Record<string, DocumentedResponse>;
}

const document = buildOpenApi(ENDPOINTS, {} as Parameters<typeof buildOpenApi>[1]) as {
  paths: Record<string, Record<string, DocumentedOperation>>;
};
const walked = Object.values(document.paths).flatMap((methods) =>
  Object.entries(methods).map(([method, operation]) => ({ method, ...operation })),
);
const creating = walked.filter(({ responses }) => responses['201']);
const deleting = walked.filter(({ method }) => method === 'delete');

let place: OperationsPlace & { close(): Promise<void> };

beforeAll(async () => {
  place = await startOperationsPlace();
});
afterAll(() => place?.close());

function operationOf(name: string): Operation {
  const operation = OPERATIONS[name];
  if (!operation) throw new Error(`${name} has no entry in the list of operations`);
  return operation;
}

const perform = (operation: Operation, request: OperationRequest, key: string) => {
  const { headers = {}, ...body } = bodyOf(request);
  return send(place.api, {
    method: operation.method,
    path: addressOf(operation, request),
    key,
    headers,
    ...body,
  });
};

describe('an operation that answers 201', () => {
  it('is among those of the document', () => {
    expect(creating.map(({ operationId }) => operationId)).toEqual(
      expect.arrayContaining(['createClaim', 'confirmReviewItem', 'createKey', 'createContractRate']),
    );
  });

  it.each(creating)(
    '$operationId names in Location what it made, and a GET there answers it',
    async (one) => {
      expect(Object.keys(one.responses['201']?.headers ?? {})).toContain('Location');
      const owner = await place.api.addOrganization();
      const operation = operationOf(one.operationId);
      const made = await perform(operation, await operation.request(place, owner), owner.adminKey);
      expect(made.status, made.bytes.toString()).toBe(201);
      const location = String(made.headers.location);
      expect(location).toMatch(/^\/api\/v1\/[^?#]+$/);
      const read = await place.api.get(location, owner.adminKey);
      expect([read.status, read.body.id]).toEqual([200, made.body.id]);
    },
  );
});

const SIGN_OUTS = ['endSession', 'endOwnSessions'];

describe('a DELETE', () => {
  it('is among the operations of the document', () => {
    expect(deleting.length).toBeGreaterThan(7);
  });

  it.each(deleting)('$operationId answers 204 without a body, and 404 when it is gone', async (one) => {
    const successes = Object.entries(one.responses).filter(([status]) => Number(status) < 400);
    expect(successes.map(([status, { content }]) => [status, content])).toEqual([['204', undefined]]);
    const owner = await place.api.addOrganization();
    const operation = operationOf(one.operationId);
    const request = await operation.request(place, owner);
    const first = await perform(operation, request, owner.adminKey);
    expect([first.status, first.bytes.length, first.headers['content-type']]).toEqual([204, 0, undefined]);
    // Signing out ends what there is, possibly nothing.
    if (SIGN_OUTS.includes(one.operationId)) return;
    const again = await perform(operation, request, owner.adminKey);
    expect([again.status, again.body.code]).toEqual([404, 'not_found']);
    if (!operation.ids) return;
    const params = Object.fromEntries(
      Object.entries(operation.ids).map(([name, unknown]) => [name, unknown()]),
    );
    const unknown = await perform(operation, { ...request, params }, owner.adminKey);
    expect([unknown.status, unknown.body.code]).toEqual([404, 'not_found']);
  });
});
