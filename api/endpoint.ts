import type { Readable } from 'node:stream';
import { z } from 'zod';
import type { OrgDb } from '../db/orgDb.js';
import { type Role, SCOPES, type Scope } from '../domain/access/keyRules.js';
import type { ErrorCode } from '../domain/errors.js';
import type { RunKind } from '../domain/runs/runKinds.js';
import type { Settle as SettleAnswer } from '../usecases/access/answerOnce.js';
import type { OpenRunLimit } from '../usecases/runs/openRun.js';
import type { ApiDeps } from './deps.js';
import type { IncomingBody } from './pipeline/body.js';
import type { Deprecation } from './pipeline/deprecation.js';

/**
 * What a key that is bound to a workspace is answered (docs/access.md): `own` the rows of its workspace's project
 * alone, `shared` what is the same for everybody in the organization, `refused` 403.
 */
export const WORKSPACE_RULES = ['own', 'shared', 'refused'] as const;
export type WorkspaceRule = (typeof WORKSPACE_RULES)[number];

/**
 * Who may call: everybody, or a key that holds the scope, and the role besides where others hold the scope for less. An
 * endpoint without one neither compiles nor starts.
 */
export type Access = { public: true } | { scope: Scope; workspace: WorkspaceRule; role?: 'admin' };

/**
 * By which limits an endpoint's requests are counted (docs/limits.md): those of its key, and of its organization where
 * it begins a run or an export.
 */
export type LimitClass = 'public' | 'read' | 'write' | 'ingest' | 'export' | RunKind;

export type HttpMethod = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** The part of an organization that a key is bound to. */
export interface CallerWorkspace {
  id: string;
  /** Its calls' `project_id`: stamped on calls that name none, and the only one whose rows it reads. */
  projectId: string;
}

/** The key behind a request. */
export interface Caller {
  keyId: string;
  orgId: string;
  role: Role;
  /** undefined: a key of the whole organization. */
  workspace: CallerWorkspace | undefined;
  /** May read payloads: asked for by include_payload. */
  allows(scope: Scope): boolean;
}

export interface EndpointRequest<Q, P, B> {
  query: Q;
  params: P;
  body: B;
  /** The request's unread body, for endpoints that stream it; with `body` declared it is spent. */
  incoming: IncomingBody;
  header(name: string): string | undefined;
  requestId: string;
  /** Not for public endpoints: they have no caller. */
  caller: Caller;
  /** The caller's rows and no others. Not for public endpoints. */
  orgDb: OrgDb;
  /** Aborted when the client goes away. */
  signal: AbortSignal;
  /** Counts the items of a batch by the key's limit, before any of them is stored. Error: rate_limited. */
  chargeItems(count: number): Promise<void>;
  /** Under what a new run may be begun; undefined: under no limit. */
  runLimit: OpenRunLimit | undefined;
  /**
   * Work that must not begin before everything is committed (waking the dispatcher, reloading what a process holds in
   * memory): run in order once the handler is through, and awaited before the answer goes out.
   */
  afterCommit(work: () => unknown): void;
  /**
   * Runs the part that stores something in one transaction, together with what a repeat of the request is answered
   * (docs/decisions/0032). Only for endpoints that do something else first, which no transaction may wait for.
   */
  settle: Settle;
}

export type Settle = SettleAnswer<EndpointResponse>;

/**
 * What the header Idempotency-Key does at a POST or PATCH (docs/decisions/0032). `transaction`: the handler's statements
 * and the stored answer are one transaction, so the handler asks nobody else and streams nothing. `afterwards`: the
 * handler runs outside of a transaction, under a lease; the answer is stored with `settle`, or after the handler where
 * doing its work twice harms nothing. `ignored`: repeats are recognized by the content.
 */
export type IdempotencyMode = 'transaction' | 'afterwards' | 'ignored';

/** How an endpoint takes the header; undefined where it means nothing: to do it again changes nothing there. */
export function idempotencyOf(endpoint: Endpoint): Exclude<IdempotencyMode, 'ignored'> | undefined {
  if ((endpoint.method !== 'post' && endpoint.method !== 'patch') || 'public' in endpoint.access)
    return undefined;
  const mode = endpoint.idempotency ?? 'transaction';
  return mode === 'ignored' ? undefined : mode;
}

/**
 * Refuses endpoints whose repeats could not be recognized. Throws TypeError with their names, so that the service
 * does not start.
 */
export function assertRepeatable(endpoints: readonly Endpoint[]): void {
  const wrong = endpoints.filter((endpoint) => {
    const mode = idempotencyOf(endpoint);
    const isOfProject = !('public' in endpoint.access) && endpoint.access.workspace === 'own';
    return (
      mode !== undefined && (isOfProject || (endpoint.streams && (mode !== 'afterwards' || !endpoint.drain)))
    );
  });
  if (wrong.length === 0) return;
  const names = wrong.map(({ operationId }) => operationId).join(', ');
  throw new TypeError(
    `repeats of ${names} cannot be recognized: an endpoint that streams declares idempotency 'afterwards' and drain, and one for keys of a workspace declares 'ignored'`,
  );
}

export interface EndpointResponse {
  status: number;
  headers?: Record<string, string>;
  /** JSON body; undefined sends none. */
  body?: unknown;
  /** Bytes or a stream instead of JSON, with its content type. */
  content?: { type: string; data: Readable | Buffer | string };
}

/** One documented answer. */
export interface ResponseDoc {
  description: string;
  schema?: z.ZodType;
  contentType?: string;
  /** The media types that a parameter asks for instead, each with its schema, or `text`. */
  otherTypes?: Readonly<Record<string, z.ZodType | 'text'>>;
  headers?: Record<string, string>;
}

export interface EndpointDefinition<Q extends z.ZodType, P extends z.ZodType, B extends z.ZodType> {
  operationId: string;
  method: HttpMethod;
  /** OpenAPI form, e.g. `/api/v1/events/{id}`. */
  path: string;
  /** Other paths with the same handler, not listed in the documents. */
  aliases?: readonly string[];
  tag: string;
  summary: string;
  description?: string;
  access: Access;
  /** Where nothing is said: `public` without a key, `read` for GET, `ingest` where calls are sent, else `write`. */
  limit?: LimitClass;
  /** Set when the endpoint is to go: its answers say so from then on (docs/api.md). */
  deprecated?: Deprecation;
  /** How the key travels: bearer, or Basic with the key as the password for clients that know no other way. */
  authSchemes?: readonly ('bearer' | 'basic')[];
  query?: Q;
  params?: P;
  /** JSON body, read and parsed before the handler. */
  body?: B;
  /** A request without a body is as one with `{}`. */
  isBodyOptional?: true;
  /** Of a POST or PATCH; `transaction` where nothing is said. */
  idempotency?: IdempotencyMode;
  /** Media types of a body that the handler reads itself, for the documents. */
  streams?: Record<string, z.ZodType | 'binary'>;
  /** Reads such a body to its end and keeps nothing, so that a repeat can be compared with what came first. */
  drain?(incoming: IncomingBody): Promise<unknown>;
  responses: Record<number, ResponseDoc>;
  /** The only codes that the handler may throw besides those of every endpoint. */
  problems: readonly ErrorCode[];
  handle(
    request: EndpointRequest<z.output<Q>, z.output<P>, z.output<B>>,
    deps: ApiDeps,
  ): Promise<EndpointResponse>;
}

/** An endpoint with its types erased, as the application lists them. */
export type Endpoint = Omit<EndpointDefinition<z.ZodType, z.ZodType, z.ZodType>, 'handle'> & {
  // biome-ignore lint/suspicious/noExplicitAny: the schemas beside it have just parsed what the handler takes
  handle(request: EndpointRequest<any, any, any>, deps: ApiDeps): Promise<EndpointResponse>;
};

/** One endpoint: access, schemas, problems and handler in one object, from which the OpenAPI document is made too. */
export function defineEndpoint<
  Q extends z.ZodType = z.ZodType<unknown>,
  P extends z.ZodType = z.ZodType<unknown>,
  B extends z.ZodType = z.ZodType<unknown>,
>(definition: EndpointDefinition<Q, P, B>): Endpoint {
  return definition;
}

type GroupedDefinition<Q extends z.ZodType, P extends z.ZodType, B extends z.ZodType> = Omit<
  EndpointDefinition<Q, P, B>,
  'method' | 'path' | 'tag' | 'access' | 'problems'
> &
  Partial<Pick<EndpointDefinition<Q, P, B>, 'tag' | 'access' | 'problems'>>;

type AddEndpoint = <
  Q extends z.ZodType = z.ZodType<unknown>,
  P extends z.ZodType = z.ZodType<unknown>,
  B extends z.ZodType = z.ZodType<unknown>,
>(
  path: string,
  definition: GroupedDefinition<Q, P, B>,
) => Endpoint;

/**
 * Collects the endpoints of a resource in the order in which they are added. `access` holds for those that name none:
 * one for all, or one for GET and one for the other methods.
 */
export function endpointGroup({
  tag,
  access,
}: {
  tag: string;
  access: Access | { read: Access; write: Access };
}): { readonly endpoints: readonly Endpoint[] } & Readonly<Record<HttpMethod, AddEndpoint>> {
  const { read, write } = 'read' in access ? access : { read: access, write: access };
  const endpoints: Endpoint[] = [];
  const adder =
    (method: HttpMethod): AddEndpoint =>
    (path, definition) => {
      const shared = { tag, access: method === 'get' ? read : write, problems: [] };
      const endpoint = defineEndpoint({ ...shared, ...definition, method, path });
      endpoints.push(endpoint);
      return endpoint;
    };
  return {
    endpoints,
    get: adder('get'),
    post: adder('post'),
    put: adder('put'),
    patch: adder('patch'),
    delete: adder('delete'),
  };
}

/**
 * Refuses endpoints of which nobody has said who may call them: the types say so too, but an endpoint may reach us
 * past them. Throws TypeError with all of their names, so that the service does not start.
 */
export function assertDeclaredAccess(endpoints: readonly Endpoint[]): void {
  const undeclared = endpoints.filter(({ access }) => !isDeclared(access));
  if (undeclared.length === 0) return;
  const names = undeclared.map(({ operationId }) => operationId).join(', ');
  throw new TypeError(
    `no access is declared for ${names}: give access { public: true } or { scope, workspace }`,
  );
}

function isDeclared(access: unknown): boolean {
  if (typeof access !== 'object' || access === null) return false;
  if ('public' in access) return access.public === true;
  if (!('scope' in access) || !('workspace' in access)) return false;
  return (
    SCOPES.some((scope) => scope === access.scope) &&
    WORKSPACE_RULES.some((rule) => rule === access.workspace)
  );
}

/** By which limits an endpoint's requests are counted. */
export function limitClassOf({ access, limit, method }: Endpoint): LimitClass {
  if (limit) return limit;
  if ('public' in access) return 'public';
  if (method === 'get') return 'read';
  return access.scope === 'ingest' ? 'ingest' : 'write';
}

const NO_FIELDS = z.strictObject({});

/**
 * The JSON body that an endpoint reads. One that declares none and changes something accepts an empty object and refuses
 * fields: their sender believes that they have an effect.
 */
export function jsonBodyOf(endpoint: Endpoint): { schema: z.ZodType; isOptional: boolean } | undefined {
  const { body, isBodyOptional, method, streams } = endpoint;
  if (body) return { schema: body, isOptional: isBodyOptional ?? false };
  return method === 'get' || streams ? undefined : { schema: NO_FIELDS, isOptional: true };
}

/** Every code that an endpoint may answer: those that it lists, and those of reading a request and of storing. */
export function problemsOf(endpoint: Endpoint): ReadonlySet<ErrorCode> {
  const codes: ErrorCode[] = [
    ...endpoint.problems,
    'internal_error',
    'rate_limited',
    'service_unavailable',
    'storage_full',
    'uri_too_long',
    'malformed_request',
    'request_head_too_large',
    'request_too_slow',
  ];
  if (!('public' in endpoint.access)) codes.push('unauthenticated', 'forbidden');
  if (idempotencyOf(endpoint))
    codes.push(
      'invalid_idempotency_key',
      'idempotency_key_reused',
      'idempotency_in_progress',
      'secret_key_missing',
    );
  if (endpoint.idempotency !== 'ignored') codes.push('invalid_parameter');
  if (jsonBodyOf(endpoint))
    codes.push(
      'invalid_json',
      'json_too_deep',
      'invalid_body',
      'invalid_encoding',
      'payload_too_large',
      'body_too_slow',
      'unsupported_media_type',
    );
  return new Set(codes);
}
