import { promises as dns, type LookupAddress } from 'node:dns';
import {
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
  validateHeaderName,
  validateHeaderValue,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import { DomainError } from '../../domain/errors.js';
import { isPublicAddress } from './publicAddress.js';
import { ALLOW_REMEDY, type AllowedHosts, BAD_PORT, NOT_PUBLIC, readTarget, type Target } from './target.js';

/** Longest wait for a connection, and for everything. */
const CONNECT_MS = 5_000;
export const TOTAL_MS = 15_000;
/** Of an answer no more than this is read; the rest is cut off with its connection. */
export const ANSWER_BYTES_MAX = 65_536;
const ANSWER_HEADER_BYTES_MAX = 16_384;
const USER_AGENT = 'Trueup/1';
/** What our own code may not set: framing, the connection and where the request goes are decided here. */
const OWN_HEADERS = new Set([
  'accept-encoding',
  'connection',
  'content-length',
  'expect',
  'host',
  'transfer-encoding',
]);

export interface SafeFetchOptions {
  /** OUTBOUND_ALLOWED_HOSTS: hosts of the operator's own network. */
  allowedHosts?: AllowedHosts;
  /** Every address of a name; the system's resolver when absent. */
  resolve?: (host: string) => Promise<readonly LookupAddress[]>;
  /** The authority to believe instead of the usual ones, in PEM. */
  ca?: string;
  connectMs?: number;
  totalMs?: number;
}

export interface SafeRequest {
  method: 'GET' | 'POST' | 'PUT';
  url: string;
  headers?: Readonly<Record<string, string>>;
  body?: Buffer | string;
  signal?: AbortSignal;
}

interface JudgedRequest extends SafeRequest {
  headers: Record<string, string>;
  signal: AbortSignal;
}

/** An answer of any status: a redirect is an answer like others and is not followed. */
export interface SafeAnswer {
  status: number;
  headers: IncomingMessage['headers'];
  /** As it came, not inflated. */
  body: Buffer;
  /** There was more than 64 KB. */
  isCut: boolean;
}

/** Why there is no answer: `refused` stays so until the address changes, the others may pass. */
export type SafeFetchFault = 'refused' | 'timed_out' | 'unreachable' | 'broken_answer' | 'cancelled';

/** Its message names no address that a name leads to: it is shown to whoever gave the name. */
export class SafeFetchError extends Error {
  readonly fault: SafeFetchFault;

  constructor(fault: SafeFetchFault, message: string) {
    super(message);
    this.name = 'SafeFetchError';
    this.fault = fault;
  }
}

/**
 * The only way to an address that a user gave (OWASP API7, ASVS 5 1.3.6). Only http and https, only to public addresses
 * and to hosts that the operator allows; the address that was judged is the one that is connected to, so a name that
 * leads elsewhere the second time gains nothing. No redirects, no proxy of the environment, no kept connections, no
 * inflating, at most 64 KB of the answer, at most 15 seconds.
 */
export class SafeFetch {
  readonly #allowedHosts: AllowedHosts;
  readonly #resolve: (host: string) => Promise<readonly LookupAddress[]>;
  readonly #ca: string | undefined;
  readonly #connectMs: number;
  readonly #totalMs: number;

  constructor(options: SafeFetchOptions = {}) {
    this.#allowedHosts = options.allowedHosts ?? new Set();
    this.#resolve = options.resolve ?? ((host) => dns.lookup(host, { all: true, verbatim: true }));
    this.#ca = options.ca;
    this.#connectMs = options.connectMs ?? CONNECT_MS;
    this.#totalMs = options.totalMs ?? TOTAL_MS;
  }

  /**
   * For the moment at which a user enters an address; `field` is its place in the body. What a name leads to may change,
   * so `send` judges again. Returns the address as it is to be stored.
   * @throws DomainError invalid_body
   */
  async assertPublicAddress(text: string, field: string): Promise<string> {
    const target = readTarget(text, this.#allowedHosts);
    const found = typeof target === 'string' ? target : await this.#faultOf(target);
    if (found === undefined) return (target as Target).url.href;
    const fault = found === NOT_PUBLIC || found === BAD_PORT ? `${found}; ${ALLOW_REMEDY}` : found;
    throw new DomainError('invalid_body', `${field}: ${fault}`, {
      issues: [{ in: 'body', field, message: fault }],
    });
  }

  async #faultOf(target: Target): Promise<string | undefined> {
    try {
      await this.#addressesOf(target);
      return undefined;
    } catch (error) {
      if (!(error instanceof SafeFetchError)) throw error;
      return error.fault === 'refused'
        ? NOT_PUBLIC
        : 'has a name that cannot be resolved; check its spelling';
    }
  }

  /** Where a name leads, judged: one address inside spoils them all, since any of them may be connected to. */
  async #addressesOf(target: Target): Promise<readonly LookupAddress[]> {
    const addresses = await this.#resolveInTime(target);
    if (addresses.length === 0)
      throw new SafeFetchError('unreachable', `the name ${target.host} leads nowhere`);
    if (!target.isAllowed && !addresses.every(({ address }) => isPublicAddress(address)))
      throw new SafeFetchError('refused', `the address ${NOT_PUBLIC}`);
    return addresses;
  }

  async #resolveInTime(target: Target): Promise<readonly LookupAddress[]> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(tooLate(target, this.#connectMs)), this.#connectMs);
    });
    try {
      return await Promise.race([this.#resolve(target.host), late]);
    } catch (error) {
      if (error instanceof SafeFetchError) throw error;
      throw new SafeFetchError('unreachable', `the name ${target.host} cannot be resolved`);
    } finally {
      clearTimeout(timer);
    }
  }

  /** @throws SafeFetchError where there is no answer; TypeError for headers that are not the caller's to set. */
  async send(request: SafeRequest): Promise<SafeAnswer> {
    const target = readTarget(request.url, this.#allowedHosts);
    if (typeof target === 'string') throw new SafeFetchError('refused', `the address ${target}`);
    const headers = headersOf(request);
    const deadline = AbortSignal.timeout(this.#totalMs);
    const signal = request.signal ? AbortSignal.any([request.signal, deadline]) : deadline;
    try {
      return await this.#exchange(target, { ...request, headers, signal });
    } catch (error) {
      if (error instanceof SafeFetchError) throw error;
      if (request.signal?.aborted) throw new SafeFetchError('cancelled', 'the request was cancelled');
      if (deadline.aborted) throw tooLate(target, this.#totalMs);
      throw faultOfConnection(error, target);
    }
  }

  #exchange(target: Target, request: JudgedRequest): Promise<SafeAnswer> {
    const isTls = target.url.protocol === 'https:';
    // An agent of its own: no connection is shared or kept, and none goes through a proxy of the environment.
    const agent = isTls ? new HttpsAgent({ keepAlive: false }) : new HttpAgent({ keepAlive: false });
    return new Promise((resolve, reject) => {
      const outgoing = (isTls ? httpsRequest : httpRequest)(target.url, {
        method: request.method,
        headers: request.headers,
        agent,
        lookup: this.#lookup(target),
        maxHeaderSize: ANSWER_HEADER_BYTES_MAX,
        rejectUnauthorized: true,
        ca: this.#ca,
        signal: request.signal,
      });
      let isAnswered = false;
      const connecting = setTimeout(
        () => outgoing.destroy(tooLate(target, this.#connectMs)),
        this.#connectMs,
      );
      outgoing.on('socket', (socket) =>
        socket.once(isTls ? 'secureConnect' : 'connect', () => clearTimeout(connecting)),
      );
      outgoing.on('close', () => {
        clearTimeout(connecting);
        agent.destroy();
        // After a 101, which nobody asked for, there is neither an answer nor an error.
        if (!isAnswered)
          reject(new SafeFetchError('broken_answer', `${target.host} ended without an answer`));
      });
      outgoing.on('error', reject);
      outgoing.on('response', (response) => {
        isAnswered = true;
        readAnswer(response).then(resolve, reject);
      });
      outgoing.end(request.body);
    });
  }

  /** Node asks it for every name that it connects to, and connects to what it is given: what was judged. */
  #lookup(target: Target): LookupFunction {
    return (_host, options, done) => {
      this.#addressesOf(target).then(
        (addresses) => {
          const [first] = addresses;
          if (options.all) done(null, [...addresses]);
          else done(null, first?.address ?? '', first?.family);
        },
        (error: Error) => done(error, []),
      );
    };
  }
}

function headersOf({ headers = {}, body }: SafeRequest): Record<string, string> {
  const sent: Record<string, string> = { 'user-agent': USER_AGENT };
  for (const [name, value] of Object.entries(headers)) {
    if (OWN_HEADERS.has(name.toLowerCase()))
      throw new TypeError(`the header ${name} is not the caller's to set`);
    validateHeaderName(name);
    validateHeaderValue(name, value);
    sent[name.toLowerCase()] = value;
  }
  // Nothing is inflated here, so nothing small can become large.
  sent['accept-encoding'] = 'identity';
  sent.connection = 'close';
  if (body !== undefined) sent['content-length'] = String(Buffer.byteLength(body));
  return sent;
}

async function readAnswer(response: IncomingMessage): Promise<SafeAnswer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Leaving the loop destroys the response, and its connection with it.
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > ANSWER_BYTES_MAX) break;
  }
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    body: Buffer.concat(chunks).subarray(0, ANSWER_BYTES_MAX),
    isCut: bytes > ANSWER_BYTES_MAX,
  };
}

function tooLate({ host }: Target, ms: number): SafeFetchError {
  return new SafeFetchError('timed_out', `${host} did not answer within ${ms / 1_000} s`);
}

/** A failure below or inside HTTP, told by the system's code alone: its text may name an address. */
function faultOfConnection(error: unknown, { host }: Target): SafeFetchError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (/^HPE_|^ERR_HTTP|^ERR_STREAM|^Z_/.test(code))
    return new SafeFetchError('broken_answer', `${host} did not answer in HTTP (${code})`);
  const told = /^[A-Z][A-Z0-9_]{1,60}$/.test(code) ? ` (${code})` : '';
  return new SafeFetchError('unreachable', `the connection to ${host} failed${told}`);
}
