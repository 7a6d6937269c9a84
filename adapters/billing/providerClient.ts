import { createHash } from 'node:crypto';
import { DomainError } from '../../domain/errors.js';
import type { ConnectorCheck, ProviderAccess } from './connector.js';
import { hasRetryAfter, Pacer, rateLimited, retryAfterOf, spentWindowOf } from './pacer.js';
import { PageTooLarge } from './pageRows.js';

/** Longest wait for one complete answer, milliseconds. */
export const REQUEST_DEADLINE_MS = 60_000;
/** Largest page, bytes; a day of a large account has a few megabytes. */
export const PAGE_BYTES_MAX = 32 * 1_048_576;
/** Bytes that are read of a refusal. */
const REFUSAL_BYTES_MAX = 65_536;
/** Characters of a key: others are not permitted in a header. */
const KEY = /^[\x21-\x7e]{1,512}$/;
const USER_AGENT = 'Trueup-billing/1 (read-only cost and usage reports)';

export interface ProviderClientOptions {
  /** Scheme, host and perhaps a path before the provider's; from the configuration, never from a tenant. */
  baseUrl: string;
  words: ProviderTerms;
  /**
   * Authentication headers for one request. Error: credentials_refused where the credentials have an impossible form.
   */
  authorize(
    access: ProviderAccess,
    outgoing: OutgoingRequest,
  ): AuthorizingHeaders | Promise<AuthorizingHeaders>;
  /**
   * Called when the provider answered 401: drops what `authorize` cached for these credentials. true: something was
   * cached, so a retry may succeed.
   */
  onUnauthorized?(access: ProviderAccess): boolean;
  requestGapMs: number;
  /** The present time, microseconds since 1970. */
  nowMicros(): bigint;
  /** Monotonic clock, milliseconds. */
  nowMs(): number;
  deadlineMs?: number;
  pageBytesMax?: number;
}

export type AuthorizingHeaders = Readonly<Record<string, string>>;

/** A request before it is sent, for providers that sign it. */
export interface OutgoingRequest {
  method: 'GET' | 'POST';
  url: URL;
  /** '' for GET. */
  body: string;
  /** Lower-case names; to be signed and sent unchanged. */
  headers: Readonly<Record<string, string>>;
}

/** An answer with status 200, or 204 without data (the body is then empty). */
export interface ProviderAnswer {
  /** Path and query of the request. */
  requestPath: string;
  status: number;
  headers: Headers;
  body: Buffer;
  fetchedAtMicros: bigint;
}

/** Query parameters: names with several values are repeated as `name[]`. */
export interface ProviderRequest {
  path: string;
  query: Readonly<Record<string, string | readonly string[]>>;
  /** The report of the path, for error messages. */
  report: string;
  /** JSON; the request is then a POST. */
  body?: string;
  /** Headers besides the common ones, in lower case. */
  headers?: Readonly<Record<string, string>>;
  /** Whether the request is for a page after one that the provider named. */
  hasCursor?: boolean;
}

/**
 * Requests to one provider: paced, with a deadline and a limit of bytes, without redirects. Every failure is a
 * DomainError (adapters/billing/connector.ts) with our message, because the provider's text may quote the key.
 */
export class ProviderClient {
  readonly #options: ProviderClientOptions;
  readonly #base: URL;
  readonly #pacer: Pacer;

  constructor(options: ProviderClientOptions) {
    this.#options = options;
    this.#base = new URL(options.baseUrl);
    this.#pacer = new Pacer(options.requestGapMs, options.nowMs);
  }

  async ask(access: ProviderAccess, request: ProviderRequest): Promise<ProviderAnswer> {
    const { words, nowMicros } = this.#options;
    const paceKey = paceKeyOf(access);
    await this.#pacer.turn(paceKey, access.signal);
    const url = this.#urlOf(request);
    const deadline = AbortSignal.timeout(this.#options.deadlineMs ?? REQUEST_DEADLINE_MS);
    const signal = AbortSignal.any([access.signal, deadline]);
    try {
      let response = await this.#send({ ...access, signal }, request, url);
      if (response.status === 401 && this.#options.onUnauthorized?.(access)) {
        await response.body?.cancel();
        response = await this.#send({ ...access, signal }, request, url);
      }
      if (response.status !== 200 && response.status !== 204)
        throw await this.#refusal(response, request, access, paceKey);
      const body = await readBody(response, this.#options.pageBytesMax ?? PAGE_BYTES_MAX, words.name);
      const fetchedAtMicros = nowMicros();
      const spentSeconds = spentWindowOf(response.headers, fetchedAtMicros);
      if (spentSeconds !== undefined) this.#pacer.block(paceKey, spentSeconds);
      const { status, headers } = response;
      return { requestPath: `${url.pathname}${url.search}`, status, headers, body, fetchedAtMicros };
    } catch (error) {
      if (access.signal.aborted) throw access.signal.reason;
      if (error instanceof DomainError) throw error;
      throw unreachable(error, deadline.aborted, words.name);
    }
  }

  async #send(access: ProviderAccess, request: ProviderRequest, url: URL): Promise<Response> {
    const { body } = request;
    const method = body === undefined ? ('GET' as const) : ('POST' as const);
    const headers = {
      accept: 'application/json',
      'user-agent': USER_AGENT,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...request.headers,
    };
    const proof = await this.#options.authorize(access, { method, url, body: body ?? '', headers });
    return fetch(url, {
      method,
      headers: { ...headers, ...proof },
      redirect: 'manual',
      signal: access.signal,
      ...(body === undefined ? {} : { body }),
    });
  }

  #urlOf({ path, query }: ProviderRequest): URL {
    const url = new URL(this.#base);
    url.pathname = `${this.#base.pathname.replace(/\/+$/, '')}${path}`;
    for (const [name, value] of Object.entries(query)) {
      if (typeof value === 'string') url.searchParams.append(name, value);
      else for (const item of value) url.searchParams.append(`${name}[]`, item);
    }
    return url;
  }

  async #refusal(
    response: Response,
    request: ProviderRequest,
    access: ProviderAccess,
    paceKey: string,
  ): Promise<DomainError> {
    const text = await readStart(response);
    const retryAfterSeconds = retryAfterOf(response.headers, this.#options.nowMicros());
    const meant = this.#options.words.statusOf?.(response.status, text) ?? response.status;
    if (meant === 429) this.#pacer.block(paceKey, retryAfterSeconds);
    return refusalOf({
      status: response.status,
      text,
      report: request.report,
      hasCursor: request.hasCursor ?? 'page' in request.query,
      adminKey: access.credentials.admin_key,
      retryAfterSeconds,
      hasRetryAfter: hasRetryAfter(response.headers),
      words: this.#options.words,
    });
  }
}

/** Requests with the same credentials share their pace. */
function paceKeyOf({ credentials }: ProviderAccess): string {
  const parts = Object.entries(credentials).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

/** The only key of a provider that takes one. Error: credentials_refused where it is missing or malformed. */
export function adminKeyOf(access: ProviderAccess, words: ProviderTerms): string {
  const adminKey = access.credentials.admin_key ?? '';
  if (KEY.test(adminKey)) return adminKey;
  const fault = adminKey === '' ? 'is missing' : 'holds characters that no key has';
  throw new DomainError('credentials_refused', `the credential admin_key ${fault}; ${words.remedy}`);
}

/** The whole body. Error: PageTooLarge when it exceeds the size of a page. */
async function readBody(response: Response, bytesMax: number, name: string): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > bytesMax) {
      // Leaving the loop cancels the stream, so the rest is not read.
      throw new PageTooLarge(name, bytesMax);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The beginning of a refusal; '' when it breaks off. */
async function readStart(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of response.body ?? []) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes >= REFUSAL_BYTES_MAX) break;
    }
  } catch {
    // The status is sufficient.
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The error of a failed connection. It contains only the system's error code, not its text. */
function unreachable(error: unknown, isLate: boolean, name: string): DomainError {
  const cause = error instanceof Error ? (error.cause as { code?: unknown } | undefined) : undefined;
  const code = typeof cause?.code === 'string' && /^[A-Z_]{1,40}$/.test(cause.code) ? ` (${cause.code})` : '';
  return new DomainError(
    'provider_unavailable',
    isLate ? `${name} did not answer in time` : `the connection to ${name} failed${code}`,
    { retryAfterSeconds: OUTAGE_SECONDS },
  );
}

export interface ProviderTerms {
  /** The provider's name in messages. */
  name: string;
  /** The required kind of key and where to create it; ends a sentence. */
  remedy: string;
  /** Prefix of every admin key; undefined: there is none. */
  adminKeyPrefix?: string;
  /** The subject of messages, e.g. `the application`; absent: `the key`. */
  subject?: string;
  /**
   * The status that an answer means where the provider sends another one; `page`: the requested page no longer exists.
   */
  statusOf?(status: number, text: string): number | 'page' | undefined;
  /** The meaning of a 404 that is not an outage; ends a sentence. */
  notFoundMeans?: string;
  /** The setting that holds the base address. */
  baseUrlSetting: string;
}

export interface Refusal {
  status: number;
  /** The beginning of the answer's body; never quoted, because it may contain a part of the key. */
  text: string;
  report: string;
  /** Whether the request named a page. */
  hasCursor: boolean;
  /** undefined: the credentials are not a single key. */
  adminKey: string | undefined;
  retryAfterSeconds: number;
  hasRetryAfter: boolean;
  words: ProviderTerms;
}

/** Retry-After of an outage without a stated duration, seconds. */
export const OUTAGE_SECONDS = 30;

const MISSING_SCOPES = /missing scopes?:\s*([a-z]\w*(?:\.\w+)*(?:,\s*[a-z]\w*(?:\.\w+)*)*)/i;
const PARAMETER = /^[a-z_]{1,40}(?:\[\d{0,4}\])?$/;

/** The failure that an answer with another status than 200 means (adapters/billing/connector.ts). */
export function refusalOf(given: Refusal): DomainError {
  const meant = given.words.statusOf?.(given.status, given.text) ?? given.status;
  const isPage = meant === 'page';
  const refusal = { ...given, status: isPage ? given.status : meant };
  const { status, words, report } = refusal;
  if (status === 401 || status === 403) return credentialsRefused(refusal);
  if (status === 404 && words.notFoundMeans !== undefined) {
    return new DomainError(
      'credentials_refused',
      `${words.name} answered 404: ${words.notFoundMeans}; ${words.remedy}`,
    );
  }
  if (status === 429) {
    return rateLimited(`${words.name} limits requests (429 on ${report})`, refusal.retryAfterSeconds);
  }
  if (refusal.hasCursor && (isPage || (status === 400 && isAboutPage(refusal.text)))) {
    return new DomainError(
      'provider_paging_changed',
      `${words.name} no longer knows the page of ${report} that it named itself; the chunk is fetched from its beginning`,
    );
  }
  // A documented report that answered 404 was an outage before (2025-11-08), not its end.
  if (status >= 500 || status === 404 || status === 408 || status === 409 || status === 425) {
    return new DomainError('provider_unavailable', `${words.name} answered ${status} for ${report}`, {
      retryAfterSeconds: refusal.hasRetryAfter ? refusal.retryAfterSeconds : OUTAGE_SECONDS,
    });
  }
  if (status >= 300 && status < 400) {
    return new DomainError(
      'provider_answer_unreadable',
      `${words.name} answered ${status} for ${report}, a redirect, which is not followed; check ${words.baseUrlSetting}`,
    );
  }
  return new DomainError(
    'provider_answer_unreadable',
    `${words.name} answered ${status} for ${report}${parameterIn(refusal.text)}; the request is not what it expects`,
  );
}

function credentialsRefused({ status, text, report, adminKey, words }: Refusal): DomainError {
  const scopes = MISSING_SCOPES.exec(text)?.[1];
  const subject = words.subject ?? 'the key';
  const what = scopes
    ? `${subject} lacks the permission ${scopes} for ${report}`
    : status === 401
      ? `${subject} is not valid`
      : `${subject} may not read ${report}`;
  const prefix = words.adminKeyPrefix;
  const hint =
    prefix === undefined || adminKey === undefined || adminKey.startsWith(prefix)
      ? ''
      : ` The key given does not begin with ${prefix}, so it is no admin key.`;
  return new DomainError(
    'credentials_refused',
    `${words.name} answered ${status}: ${what}; ${words.remedy}.${hint}`,
  );
}

/**
 * Whether a refusal is about the page parameter: OpenAI names it in `error.param`, Anthropic at the beginning of
 * `error.message`.
 */
function isAboutPage(text: string): boolean {
  const error = errorOf(text);
  return error.param === 'page' || /\bpage\b|\bcursor\b|\bnext_page\b/i.test(String(error.message ?? ''));
}

function parameterIn(text: string): string {
  const error = errorOf(text);
  const param = error.param ?? /^([a-z_]{1,40}(?:\[\d{0,4}\])?)[.:]/.exec(String(error.message ?? ''))?.[1];
  return typeof param === 'string' && PARAMETER.test(param) ? ` (parameter ${param})` : '';
}

function errorOf(text: string): { param?: unknown; message?: unknown } {
  try {
    const { error } = JSON.parse(text) as { error?: unknown };
    return typeof error === 'object' && error !== null ? error : {};
  } catch {
    return {};
  }
}

/** A check with its name, its request, and the message of its success. */
export interface PlannedCheck {
  name: string;
  run(): Promise<string>;
}

/**
 * Runs the checks one after the other. A refusal and an unreadable answer fail the check with their message; temporary
 * failures (an outage, a limit) are thrown, since they do not show a fault of the connection.
 */
export async function runChecks(checks: readonly PlannedCheck[]): Promise<ConnectorCheck[]> {
  const done: ConnectorCheck[] = [];
  for (const { name, run } of checks) {
    try {
      done.push({ name, ok: true, detail: await run() });
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      if (error.code !== 'credentials_refused' && error.code !== 'provider_answer_unreadable') throw error;
      done.push({ name, ok: false, detail: error.message });
    }
  }
  return done;
}
