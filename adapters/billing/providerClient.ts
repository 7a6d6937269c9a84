import { createHash } from 'node:crypto';
import { DomainError } from '../../domain/errors.js';
import type { ProviderAccess } from './connector.js';
import { Pacer, retryAfterOf, saysRetryAfter, spentWindowOf } from './pacer.js';
import { PageTooLarge } from './pageRows.js';
import { OUTAGE_SECONDS, type ProviderWords, refusalOf } from './refusals.js';

/** Longest wait for one whole answer. */
export const REQUEST_DEADLINE_MS = 60_000;
/** Largest page; a day of a large account has a few megabytes. */
export const PAGE_BYTES_MAX = 32 * 1_048_576;
/** Of an answer that refuses only the beginning is read. */
const REFUSAL_BYTES_MAX = 65_536;
/** What a key may be made of: anything else cannot stand in a header. */
const KEY = /^[\x21-\x7e]{1,512}$/;
const USER_AGENT = 'Trueup-billing/1 (read-only cost and usage reports)';

export interface ProviderClientOptions {
  /** Scheme, host and perhaps a path before the provider's own; from the configuration, never from a tenant. */
  baseUrl: string;
  words: ProviderWords;
  /**
   * Headers that prove who asks, made for the one request. Error credentials_refused where the credentials cannot be
   * what the provider takes.
   */
  authorize(
    access: ProviderAccess,
    outgoing: OutgoingRequest,
  ): AuthorizingHeaders | Promise<AuthorizingHeaders>;
  /**
   * The provider answered 401: what `authorize` remembers of these credentials is worth nothing. True where it had been
   * remembered, so that the same request may do better with another proof.
   */
  onUnauthorized?(access: ProviderAccess): boolean;
  requestGapMs: number;
  /** The time now, microseconds since 1970. */
  nowMicros(): bigint;
  /** Milliseconds of a clock that never goes back. */
  nowMs(): number;
  deadlineMs?: number;
  pageBytesMax?: number;
}

export type AuthorizingHeaders = Readonly<Record<string, string>>;

/** A request as it will leave, for providers that sign it. */
export interface OutgoingRequest {
  method: 'GET' | 'POST';
  url: URL;
  /** '' for GET. */
  body: string;
  /** Lower-case names; to be signed and sent as they are. */
  headers: Readonly<Record<string, string>>;
}

/** An answer with status 200, or 204 where nothing is there to be told (the body is then empty). */
export interface ProviderAnswer {
  /** Path and query as asked. */
  requestPath: string;
  status: number;
  headers: Headers;
  body: Buffer;
  fetchedAtMicros: bigint;
}

/** What is asked: names with several values are repeated as `name[]`. */
export interface ProviderRequest {
  path: string;
  query: Readonly<Record<string, string | readonly string[]>>;
  /** The report that the path belongs to, for what is said when it fails. */
  report: string;
  /** JSON; the request is then a POST. */
  body?: string;
  /** Beside those that every request has, in lower case. */
  headers?: Readonly<Record<string, string>>;
  /** The request goes on behind a page that the provider named. */
  hasCursor?: boolean;
}

/**
 * Requests to one provider: paced, with a deadline and a limit of bytes, without redirects. Every failure is a
 * DomainError (adapters/billing/connector.ts) whose sentence is made of our own words: what a provider writes may
 * quote the key.
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
      saysRetryAfter: saysRetryAfter(response.headers),
      words: this.#options.words,
    });
  }
}

/** Requests with the same credentials share their pace. */
function paceKeyOf({ credentials }: ProviderAccess): string {
  const parts = Object.entries(credentials).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

/** The one key of a provider that takes no more. Error credentials_refused where it is missing or cannot be one. */
export function adminKeyOf(access: ProviderAccess, words: ProviderWords): string {
  const adminKey = access.credentials.admin_key ?? '';
  if (KEY.test(adminKey)) return adminKey;
  const fault = adminKey === '' ? 'is missing' : 'holds characters that no key has';
  throw new DomainError('credentials_refused', `the credential admin_key ${fault}; ${words.remedy}`);
}

/** The whole body. Error PageTooLarge when it is larger than a page can be. */
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

/** The beginning of an answer that refuses; '' when it breaks off. */
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
    // The status says enough.
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** A failure below HTTP. Its own text is left out, only the code of the system's error is told. */
function unreachable(error: unknown, isLate: boolean, name: string): DomainError {
  const cause = error instanceof Error ? (error.cause as { code?: unknown } | undefined) : undefined;
  const code = typeof cause?.code === 'string' && /^[A-Z_]{1,40}$/.test(cause.code) ? ` (${cause.code})` : '';
  return new DomainError(
    'provider_unavailable',
    isLate ? `${name} did not answer in time` : `the connection to ${name} failed${code}`,
    { retryAfterSeconds: OUTAGE_SECONDS },
  );
}
