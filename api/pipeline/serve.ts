import type { RouterContext } from '@koa/router';
import type { OrgDb } from '../../db/orgDb.js';
import { DomainError } from '../../domain/errors.js';
import { orgDbOf } from '../../usecases/useCaseDeps.js';
import type { ApiDeps } from '../deps.js';
import {
  acceptsSessions,
  type Caller,
  type Endpoint,
  type EndpointResponse,
  jsonBodyOf,
  type Settle,
} from '../endpoint.js';
import { readQuery, validate } from '../query.js';
import { type Authenticator, assertAllowed } from './auth.js';
import { IncomingBody, JSON_BODY_BYTES_MAX, parseStorableJson } from './body.js';
import { csvListAnswer, firstPageQuery } from './csvList.js';
import { deprecationHeaders } from './deprecation.js';
import { answerRequest, type RequestTexts } from './idempotency.js';
import type { PipelineContext } from './pipelineContext.js';
import { loggerOf } from './requestLog.js';
import { assertNotForeign, assertOwnPage, findSessionSecret } from './sessionCookie.js';

/** Serves one request: authentication, authorization, validation, the handler, the answer. */
export async function serve(
  ctx: RouterContext,
  endpoint: Endpoint,
  deps: ApiDeps,
  authenticator: Authenticator,
): Promise<void> {
  ctx.state.operation = endpoint.operationId;
  if (endpoint.deprecated) ctx.set(deprecationHeaders(endpoint.deprecated));
  let caller: Caller | undefined;
  const baseUrl = deps.settings.baseUrl();
  const secret = sessionSecretOf(ctx, endpoint, baseUrl);
  const sender = () => deps.limits.senderOf(ctx);
  const authenticate = (header: string | undefined, basic: boolean) =>
    authenticator.authenticate(header, basic, sender).catch((error: unknown) => {
      throw deps.limits.afterFailedAuthentication(ctx, error);
    });
  if (!('public' in endpoint.access)) {
    if (secret === undefined) caller = await authenticate(ctx.headers.authorization, takesBasic(endpoint));
    else {
      caller = await authenticator.authenticateSession(secret);
      assertOwnPage(ctx, baseUrl);
    }
    ctx.state.orgId = caller.orgId;
    await deps.limits.chargeKey(ctx, caller, endpoint);
    assertAllowed(caller, endpoint.access);
  } else deps.limits.chargePublic(ctx);
  const logged = { ...deps, logger: loggerOf(ctx, deps) };
  const judge = judgeAgain(ctx, endpoint, authenticator, secret);
  const hold = (bytes: number) => deps.limits.holdBody(ctx, bytes);
  const words = await readRequest(ctx, endpoint, new IncomingBody(ctx.req, { whenRead: judge, hold }));
  const csv = csvQueryOf(endpoint, words);
  if (csv) words.valid.query = csv.query;
  const afterCommit: (() => unknown)[] = [];
  const requestId = String(ctx.state.requestId);
  const begun = caller ? await deps.limits.begin(ctx, caller, endpoint) : undefined;
  const run = (orgDb: OrgDb | undefined, settle: Settle) =>
    endpoint.handle(
      Object.assign(new LazyParts(ctx, endpoint, { caller, orgDb }), {
        ...words.valid,
        header: (name: string) => headerOf(ctx, name),
        requestId,
        afterCommit: (work: () => unknown) => afterCommit.push(work),
        settle: (async (work) => {
          await judge();
          return settle(work);
        }) satisfies Settle,
        identify: (key: string) => authenticate(`Bearer ${key}`, false),
        assertNotForeign: () => assertNotForeign(ctx, baseUrl),
        runLimit: begun?.runLimit,
        chargeItems: (count: number) => deps.limits.chargeItems(ctx, known(caller, endpoint), count),
      }),
      logged,
    );
  const answered = caller
    ? answerRequest(
        { ...words, endpoint, orgDb: handleOf(caller, deps), callerKeyId: caller.keyId, requestId, run },
        headerOf(ctx, 'idempotency-key'),
        logged,
      )
    : run(undefined, refuseToSettle);
  let response = await answered.catch((error: unknown) => {
    begun?.finish();
    throw error;
  });
  begun?.finish(response);
  for (const work of afterCommit) {
    try {
      await work();
    } catch (error) {
      // The request's change is stored, so it is answered. The dispatcher and the caches find the change later without
      // the notice.
      logged.logger.warn({ err: error }, 'what follows a stored change failed');
    }
  }
  if (csv) {
    const readPage = (position: object) => {
      words.valid.query = { ...csv.query, ...position };
      return run(caller && handleOf(caller, deps), refuseToSettle);
    };
    response = csvListAnswer(csv.list, response, csv.isWhole ? readPage : undefined);
  }
  send(ctx, endpoint, response, deps);
}

/** The secret of the request's session; undefined: it has none, or a header that counts instead. */
function sessionSecretOf(ctx: RouterContext, endpoint: Endpoint, baseUrl: string): string | undefined {
  if (ctx.headers.authorization !== undefined || !acceptsSessions(endpoint)) return undefined;
  return findSessionSecret(ctx.headers.cookie, baseUrl);
}

/** Whether the endpoint accepts the key as the password of HTTP Basic. */
export function takesBasic({ authSchemes }: Endpoint): boolean {
  return authSchemes?.includes('basic') ?? false;
}

/** A change of a key takes effect after this time, also for requests in progress: see docs/decisions/0028. */
const JUDGED_MS = 500;

/**
 * Authenticates the key or the session again when the last check is older than JUDGED_MS: while a request waits for its
 * body or a provider, its key may be revoked, and a sender can stretch a body to a minute. Returns no promise when the
 * last check is recent. Errors: unauthenticated, forbidden.
 */
export function judgeAgain(
  ctx: Pick<PipelineContext, 'headers' | 'state'>,
  endpoint: Endpoint,
  authenticator: Authenticator,
  secret: string | undefined,
): () => void | Promise<void> {
  const { access } = endpoint;
  if ('public' in access) return () => undefined;
  let judgedMs = performance.now();
  const sender = () => ({ address: undefined, requestId: String(ctx.state.requestId) });
  const judge = async () => {
    const caller =
      secret === undefined
        ? await authenticator.authenticate(ctx.headers.authorization, takesBasic(endpoint), sender)
        : await authenticator.authenticateSession(secret);
    assertAllowed(caller, access);
    judgedMs = performance.now();
  };
  return () => (performance.now() - judgedMs < JUDGED_MS ? undefined : judge());
}

/** The reader of a list whose answer is CSV; undefined where it is JSON. */
function csvQueryOf(endpoint: Endpoint, { valid, words }: ReadRequest) {
  const query = valid.query as { format?: string };
  if (!endpoint.csv || query.format !== 'csv') return undefined;
  const list = typeof endpoint.csv === 'object' ? endpoint.csv : undefined;
  return { list, ...firstPageQuery(query, words.query) };
}

interface ReadRequest {
  /** Parsed values, for the handler. */
  valid: { query: unknown; params: unknown; body: unknown; incoming: IncomingBody };
  /** The values as sent. */
  words: RequestTexts;
  incoming: IncomingBody;
}

/** Parses a request by the endpoint's schemas. A body that the handler streams stays unread. */
async function readRequest(
  ctx: RouterContext,
  endpoint: Endpoint,
  incoming: IncomingBody,
): Promise<ReadRequest> {
  // Ingest ignores unknown query parameters: clients of calls may append any.
  const query = endpoint.query || endpoint.idempotency !== 'ignored' ? readQuery(ctx.querystring) : {};
  // Absent where a fixed path bypassed the router; both ways serve the same request.
  const { params = {} } = ctx as { params?: Record<string, string> };
  const valid = {
    query: endpoint.query ? validate(endpoint.query, query, 'query') : {},
    params: endpoint.params ? validate(endpoint.params, params, 'path') : {},
  };
  const json = jsonBodyOf(endpoint);
  const sent = json && (await readJsonBody(incoming, json.isOptional));
  const body = json && validate(json.schema, sent, 'body');
  const { method, path } = endpoint;
  const { mediaType } = incoming;
  // An empty body is ignored where the endpoint declares none.
  const content = endpoint.body ? sent : undefined;
  return {
    valid: { ...valid, body, incoming },
    words: { method, path, params, query, mediaType, content },
    incoming,
  };
}

/** The database handle of the caller: restricted to its organization, or to its workspace's project. */
function handleOf(caller: Caller, deps: ApiDeps): OrgDb {
  return orgDbOf(deps, caller.orgId, caller.workspace?.projectId);
}

/** Values that public endpoints lack. */
interface MaybeKnown {
  caller: Caller | undefined;
  orgDb: OrgDb | undefined;
}

/**
 * The parts of a request that this object makes or refuses when an endpoint reads them. It is a class for the same reason
 * as CallRequest (callRoute.ts).
 */
class LazyParts {
  readonly #ctx: RouterContext;
  readonly #endpoint: Endpoint;
  readonly #given: MaybeKnown;

  constructor(ctx: RouterContext, endpoint: Endpoint, given: MaybeKnown) {
    this.#ctx = ctx;
    this.#endpoint = endpoint;
    this.#given = given;
  }

  get caller(): Caller {
    return known(this.#given.caller, this.#endpoint);
  }

  get orgDb(): OrgDb {
    return known(this.#given.orgDb, this.#endpoint);
  }

  get signal(): AbortSignal {
    return signalOf(this.#ctx);
  }
}

/** Returns a value that every endpoint but the public ones has. Throws TypeError in a public one. */
function known<T>(value: T | undefined, { operationId }: Endpoint): T {
  if (value === undefined)
    throw new TypeError(`${operationId} is public: it has no caller and no organization`);
  return value;
}

const refuseToSettle: Settle = () => Promise.reject(new TypeError('a public endpoint stores nothing'));

/**
 * Aborts when the client disconnects before the answer. Created on demand, because most requests end too soon to need
 * it.
 */
export function signalOf(ctx: Pick<PipelineContext, 'res'>): AbortSignal {
  const abort = new AbortController();
  const end = () => {
    if (!ctx.res.writableFinished) abort.abort();
  };
  if (ctx.res.destroyed) end();
  else ctx.res.once('close', end);
  return abort.signal;
}

/** A header of the request, by any case of its name. */
export function headerOf(ctx: Pick<PipelineContext, 'headers'>, name: string): string | undefined {
  const value = ctx.headers[name.toLowerCase()];
  return Array.isArray(value) ? value[0] : value;
}

/** The JSON value of a body; `{}` where an optional body is absent. */
async function readJsonBody(incoming: IncomingBody, isOptional: boolean): Promise<unknown> {
  if (isOptional && incoming.isAbsent) return {};
  const type = incoming.mediaType;
  if (type !== '' && type !== 'application/json' && !type.endsWith('+json')) {
    throw new DomainError(
      'unsupported_media_type',
      `content-type: ${type.slice(0, 60)} is not read here; send application/json`,
    );
  }
  const bytes = await incoming.bytes(JSON_BODY_BYTES_MAX);
  return isOptional && bytes.length === 0 ? {} : parseStorableJson(bytes);
}

/** Throws when an answer lacks a header that its endpoint declares. */
function assertDeclaredHeaders({ operationId, responses }: Endpoint, response: EndpointResponse): void {
  const given = new Set(Object.keys(response.headers ?? {}).map((name) => name.toLowerCase()));
  const declared = Object.keys(responses[response.status]?.headers ?? {});
  const missing = declared.filter((name) => !given.has(name.toLowerCase()));
  if (missing.length > 0)
    throw new Error(`${operationId} answers ${response.status} without ${missing.join(', ')}`);
}

function send(ctx: RouterContext, endpoint: Endpoint, response: EndpointResponse, deps: ApiDeps): void {
  const content = contentOf(endpoint, response, deps);
  for (const [name, value] of Object.entries(response.headers ?? {})) ctx.set(name, value);
  ctx.status = response.status;
  if (content === undefined) {
    ctx.body = null;
    ctx.status = response.status;
    return;
  }
  const next = nextPage(ctx, response.body);
  if (next !== undefined) ctx.append('Link', `<${next}>; rel="next"`);
  ctx.set('Content-Type', content.type);
  ctx.body = content.data;
}

/** The content of an answer; undefined: it has none. In tests an answer that is not declared is an error. */
export function contentOf(
  endpoint: Endpoint,
  response: EndpointResponse,
  { settings }: Pick<ApiDeps, 'settings'>,
): EndpointResponse['content'] {
  if (settings.checkResponses) assertDeclaredHeaders(endpoint, response);
  if (response.content || response.body === undefined) return response.content;
  if (settings.checkResponses) {
    const schema = endpoint.responses[response.status]?.schema;
    if (!schema)
      throw new Error(`${endpoint.operationId} answered ${response.status}, which it does not declare`);
    schema.parse(response.body);
  }
  return { type: 'application/json', data: JSON.stringify(response.body) };
}

/** The address of the next page; undefined where the answer is no list or the last page. */
function nextPage(ctx: RouterContext, body: unknown): string | undefined {
  if (typeof body !== 'object' || body === null || !('next_cursor' in body)) return undefined;
  if (typeof body.next_cursor !== 'string') return undefined;
  const query = new URLSearchParams(ctx.querystring);
  query.delete('offset');
  query.set('cursor', body.next_cursor);
  return `${ctx.path}?${query}`;
}
