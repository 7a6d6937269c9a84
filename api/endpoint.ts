import type { Readable } from 'node:stream';
import { z } from 'zod';
import type { LiveSession } from '../db/access/sessions.js';
import type { OrgDb } from '../db/orgDb.js';
import type { AuditActor } from '../domain/access/auditLog.js';
import { type Role, SCOPES, type Scope } from '../domain/access/keyRules.js';
import type { ErrorCode } from '../domain/errors.js';
import type { RunKind } from '../domain/runs/runKinds.js';
import type { Settle as SettleAnswer } from '../usecases/access/answerOnce.js';
import type { OpenRunLimit } from '../usecases/runs/openRun.js';
import { type CsvList, type CsvTable, csvListOf, formatParameter } from './csv.js';
import type { ApiDeps } from './deps.js';
import type { IncomingBody } from './pipeline/body.js';
import type { Deprecation } from './pipeline/deprecation.js';

/**
 * Access of a key that is bound to a workspace (docs/access.md): `own` reads only rows of its workspace's project,
 * `shared` reads data that is the same for the whole organization, `refused` answers 403.
 */
export const WORKSPACE_RULES = ['own', 'shared', 'refused'] as const;
export type WorkspaceRule = (typeof WORKSPACE_RULES)[number];

/**
 * Who may call an endpoint: everybody, or a key or session with the scope; `any` is each one that is valid. Some
 * endpoints also require a role, because other roles hold the scope for lesser actions. An endpoint without access
 * neither compiles nor starts.
 */
export type Access = { public: true } | CallerAccess;
export interface CallerAccess {
  scope: Scope | 'any';
  workspace: WorkspaceRule;
  role?: 'admin';
}

/**
 * The limits that count an endpoint's requests (docs/limits.md): those of its key, and those of its organization where
 * it starts a run or an export.
 */
export type LimitClass = 'public' | 'read' | 'write' | 'ingest' | 'export' | RunKind;

export type HttpMethod = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** The workspace that a key is bound to. */
export interface CallerWorkspace {
  id: string;
  /** The workspace's project: it is set on calls that name none, and the key reads no other project's rows. */
  projectId: string;
}

/** The authenticated key or session of a request. */
export interface Caller {
  /** The id of the key; of a session that began without one, its principal: lnk_… or usr_…. */
  keyId: string;
  /** The actor in the audit log, where it is no key. */
  actor?: AuditActor;
  /** undefined: the request came with a key. */
  session?: LiveSession;
  orgId: string;
  role: Role;
  /** undefined: the key covers the whole organization. */
  workspace: CallerWorkspace | undefined;
  /** Whether the key may read payloads, which include_payload requests. */
  allows(scope: Scope): boolean;
}

export interface EndpointRequest<Q, P, B> {
  query: Q;
  params: P;
  body: B;
  /** The request's unread body, for endpoints that stream it; already consumed when `body` is declared. */
  incoming: IncomingBody;
  header(name: string): string | undefined;
  requestId: string;
  /** Throws in public endpoints: they have no caller. */
  caller: Caller;
  /** Database handle that is restricted to the caller's rows. Throws in public endpoints. */
  orgDb: OrgDb;
  /** Authenticates a key that is in the body. Error: unauthenticated, counted as one in the header. */
  identify(key: string): Promise<Caller>;
  /** Refuses a request that a browser reports as another site's. Error: cross_site_request. */
  assertNotForeign(): void;
  /** Aborted when the client disconnects. */
  signal: AbortSignal;
  /** Counts a batch's items against the key's limit, before any item is stored. Error: rate_limited. */
  chargeItems(count: number): void | Promise<void>;
  /** The limit of open runs for a new run; undefined: no limit. */
  runLimit: OpenRunLimit | undefined;
  /**
   * Registers work that must wait for the commit, such as waking the dispatcher or reloading a cache. It runs in order
   * after the handler, and the answer waits for it.
   */
  afterCommit(work: () => unknown): void;
  /**
   * Runs the storing part in one transaction with the answer that repeats of the request get (docs/decisions/0032).
   * Only for endpoints that first do something slow, for which a transaction must not wait.
   */
  settle: Settle;
}

export type Settle = SettleAnswer<EndpointResponse>;

/**
 * The treatment of the header Idempotency-Key of a POST or PATCH (docs/decisions/0032).
 * - `transaction`: the handler's statements and the stored answer are one transaction, so the handler makes no requests
 *   and streams nothing.
 * - `afterwards`: the handler runs outside of a transaction, under a lease; the answer is stored by `settle`, or after
 *   the handler where repeating its work is harmless.
 * - `own`: the handler recognizes repeats by the header itself, because its answer cannot be stored.
 * - `ignored`: the content identifies repeats.
 */
export type IdempotencyMode = 'transaction' | 'afterwards' | 'own' | 'ignored';

/**
 * The mode in which the pipeline recognizes repeats of the endpoint; undefined: the method is idempotent anyway, or the pipeline takes
 * no part in it.
 */
export function idempotencyOf(endpoint: Endpoint): Exclude<IdempotencyMode, 'own' | 'ignored'> | undefined {
  if ((endpoint.method !== 'post' && endpoint.method !== 'patch') || 'public' in endpoint.access)
    return undefined;
  const mode = endpoint.idempotency ?? 'transaction';
  return mode === 'own' || mode === 'ignored' ? undefined : mode;
}

/**
 * Throws TypeError with the names of endpoints whose repeats could not be recognized, so that the service does not
 * start.
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
  /** JSON body; undefined: the answer has no body. */
  body?: unknown;
  /** Bytes or a stream instead of JSON, with its content type. */
  content?: { type: string; data: Readable | Buffer | string };
  /** The rows of the body, of an endpoint with `csv`. */
  table?: CsvTable;
}

/** One documented answer. */
export interface ResponseDoc {
  description: string;
  schema?: z.ZodType;
  contentType?: string;
  /** Other media types that a parameter selects, each with its schema, or `text`. */
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
  /** The default: `public` without a key, `read` for GET, `ingest` where calls are sent, else `write`. */
  limit?: LimitClass;
  /** Set when the endpoint will be removed: its answers announce it (docs/api.md). */
  deprecated?: Deprecation;
  /** The transport of the key: bearer, or Basic with the key as the password for clients that know no other way. */
  authSchemes?: readonly ('bearer' | 'basic')[];
  query?: Q;
  params?: P;
  /** JSON body, read and parsed before the handler. */
  body?: B;
  /** A request without a body is as one with `{}`. */
  isBodyOptional?: true;
  /**
   * Takes `format=csv` too, and then answers the rows of its list, or the `table` of its answer where it is `true`: all of
   * them, or the page that is asked for. A text is the name of the file, with the rows of the body's list.
   */
  csv?: true | string | CsvList;
  /** Of a POST or PATCH; `transaction` when absent. */
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

/** Defines one endpoint: access, schemas, problems and handler. The OpenAPI document is built from the same object. */
export function defineEndpoint<
  Q extends z.ZodType = z.ZodType<unknown>,
  P extends z.ZodType = z.ZodType<unknown>,
  B extends z.ZodType = z.ZodType<unknown>,
>(definition: EndpointDefinition<Q, P, B>): Endpoint {
  return definition.csv ? withCsv(definition) : definition;
}

function withCsv<D extends Endpoint>(definition: D): D {
  const query = definition.query === undefined ? z.object({}) : (definition.query as z.ZodObject);
  const answer = definition.responses[200] as ResponseDoc;
  const otherTypes = { ...answer.otherTypes, 'text/csv': 'text' as const };
  const csv =
    typeof definition.csv === 'string'
      ? csvListOf(definition.csv, answer.schema as z.ZodType)
      : definition.csv;
  return {
    ...definition,
    csv,
    query: query.extend({ format: formatParameter }),
    responses: { ...definition.responses, 200: { ...answer, otherTypes } },
  };
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
 * Collects the endpoints of a resource in the order in which they are added. `access` is the default: one for all
 * methods, or one for GET and one for the others.
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
 * Throws TypeError with the names of all endpoints without declared access, so that the service does not start. The
 * types require access too, but a cast can bypass them.
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
    (access.scope === 'any' || SCOPES.some((scope) => scope === access.scope)) &&
    WORKSPACE_RULES.some((rule) => rule === access.workspace)
  );
}

/** Whether a session's cookie is accepted: calls are sent by programs, which have keys. */
export function acceptsSessions({ access }: Endpoint): boolean {
  return !('public' in access) && access.scope !== 'ingest';
}

/** The class of limits that counts an endpoint's requests. */
export function limitClassOf({ access, limit, method }: Endpoint): LimitClass {
  if (limit) return limit;
  if ('public' in access) return 'public';
  if (method === 'get') return 'read';
  return access.scope === 'ingest' ? 'ingest' : 'write';
}

const NO_FIELDS = z.strictObject({});

/**
 * The JSON body that an endpoint reads. A writing endpoint without a declared body accepts an empty object and refuses
 * fields, since their sender expects them to have an effect.
 */
export function jsonBodyOf(endpoint: Endpoint): { schema: z.ZodType; isOptional: boolean } | undefined {
  const { body, isBodyOptional, method, streams } = endpoint;
  if (body) return { schema: body, isOptional: isBodyOptional ?? false };
  return method === 'get' || streams ? undefined : { schema: NO_FIELDS, isOptional: true };
}

/** Every error code that an endpoint may answer: its own, and those of reading requests and of storing. */
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
  if (acceptsSessions(endpoint) && endpoint.method !== 'get') codes.push('cross_site_request');
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
