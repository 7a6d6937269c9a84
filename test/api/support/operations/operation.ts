import { randomBytes } from 'node:crypto';
import type { BillingFake } from '../../../fakes/billing/reportServer.js';
import type { TestApi, TestOrganization } from '../../../support/api.js';
import { anEvent, ingest } from '../requests.js';

/** The environment of valid requests: the API, and a provider behind its connections. */
export interface OperationsPlace {
  api: TestApi;
  openai: BillingFake;
}

/** One valid request, except for its key. */
export interface OperationRequest {
  /** Values of the path's parameters. */
  params?: Record<string, string>;
  query?: Record<string, string>;
  /** A JSON body. */
  json?: unknown;
  /** Any other body, with its type. */
  body?: { type: string; data: string | Buffer };
}

/**
 * Who may call an operation: everybody, or a key with the scope, and with a role where other roles hold the scope for
 * lesser actions; `any` is every key; and the answer to a workspace key: `own` shows only its project's rows, `shared` the data of the
 * whole organization, `refused` is 403. Duplicated from the endpoints on purpose, so that a change there is noticed.
 */
export type ExpectedAccess =
  | 'public'
  | { scope: string; workspace: 'own' | 'shared' | 'refused'; role?: 'admin'; alsoBasic?: boolean };

export interface Operation {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  access: ExpectedAccess;
  /** A further scope that the request's content requires. */
  alsoNeeds?: string;
  /** Without this scope the object, which the owner's admin key made, answers as an unknown one. */
  hiddenWithout?: string;
  /** Status of its success. */
  status: number;
  /** Path parameters that are ids of an organization's objects, with a generator of unused ids. */
  ids?: Record<string, () => string>;
  /**
   * A valid request of the owner; creates the objects that it needs anew each time, with the owner's admin key. Every
   * created object has the owner's marker, and `projectId` where possible.
   */
  request(place: OperationsPlace, owner: TestOrganization, projectId?: string): Promise<OperationRequest>;
}

/** Part of every text that an organization stores. */
export const markerOf = (owner: { orgId: string }): string => `owned-by-${owner.orgId.slice(0, 8)}`;

/** An id of a kind that nothing has. */
export const unknownId = (kind: string) => (): string => `${kind}_${randomBytes(16).toString('hex')}`;

/** A word that was not used before. */
export const randomName = (): string => randomBytes(6).toString('hex');

/** A call with the owner's marker in every label, its payload and its request id; the public id of the event. */
export async function makeEvent(
  { api }: OperationsPlace,
  owner: TestOrganization,
  projectId?: string,
  overrides: Record<string, unknown> = {},
): Promise<string> {
  const marker = markerOf(owner);
  const session = `${marker}-${randomName()}`;
  const event = anEvent({
    team_id: marker,
    feature: marker,
    user_id: marker,
    session_id: session,
    request_id: `${marker}-${randomName()}`,
    payload: { prompt: marker },
    ...(projectId === undefined ? {} : { project_id: projectId }),
    ...overrides,
  });
  await ingest(api, [event], owner.ingestKey);
  const { body } = await api.get(`/api/v1/events?session_id=${session}`, owner.adminKey);
  return body.events[0].id;
}

/** The body of an answer to the owner's admin key, which is to succeed. */
export async function make(
  { api }: OperationsPlace,
  owner: TestOrganization,
  path: string,
  body: unknown,
  // biome-ignore lint/suspicious/noExplicitAny: an answer that the API's own schemas have checked
): Promise<any> {
  const answer = await api.post(path, body, owner.adminKey);
  if (answer.status >= 300)
    throw new Error(`POST ${path} answered ${answer.status}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

/** The address with a request's parameters in it. */
export function addressOf(operation: Operation, request: OperationRequest): string {
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(request.params?.[name] ?? 'none'),
  );
  const query = new URLSearchParams(request.query ?? {}).toString();
  return query === '' ? path : `${path}?${query}`;
}

/** The body and its type as a client sends them. */
export function bodyOf(request: OperationRequest): {
  headers?: Record<string, string>;
  body?: string | Buffer;
} {
  if (request.body) return { headers: { 'content-type': request.body.type }, body: request.body.data };
  if (request.json === undefined) return {};
  return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(request.json) };
}
