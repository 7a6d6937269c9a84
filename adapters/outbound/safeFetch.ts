import { promises as dns, type LookupAddress } from 'node:dns';
import {
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
  validateHeaderName,
  validateHeaderValue,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { BlockList, isIP, isIPv4, type LookupFunction } from 'node:net';
import { DomainError } from '../../domain/errors.js';

/** Longest wait for a connection, and for the complete answer. */
const CONNECT_MS = 5_000;
export const TOTAL_MS = 15_000;
/** Bytes that are read of an answer; then the connection is closed. */
export const ANSWER_BYTES_MAX = 65_536;
const ANSWER_HEADER_BYTES_MAX = 16_384;
const USER_AGENT = 'Trueup/1';
/** Headers that callers may not set: framing, the connection and the target are decided here. */
const OWN_HEADERS = new Set([
  'accept-encoding',
  'connection',
  'content-length',
  'expect',
  'host',
  'transfer-encoding',
]);

export interface SafeFetchOptions {
  /** OUTBOUND_ALLOWED_HOSTS: hosts of the operator's network. */
  allowedHosts?: AllowedHosts;
  /** Resolves all addresses of a name; absent: the system's resolver. */
  resolve?: (host: string) => Promise<readonly LookupAddress[]>;
  /** A certificate authority that replaces the usual ones, in PEM. */
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
  /** Most bytes that are read of the answer; 64 KB when absent. */
  answerBytesMax?: number;
  /** Longest wait for the complete answer, milliseconds; that of the client when absent. */
  totalMs?: number;
}

interface JudgedRequest extends SafeRequest {
  headers: Record<string, string>;
  signal: AbortSignal;
}

/** An answer of any status: redirects are not followed. */
export interface SafeAnswer {
  status: number;
  headers: IncomingMessage['headers'];
  /** As received, not inflated. */
  body: Buffer;
  /** Whether the answer exceeded the request's limit. */
  isCut: boolean;
}

/** Why there is no answer: `refused` lasts until the address changes, the others may be temporary. */
export type SafeFetchFault = 'refused' | 'timed_out' | 'unreachable' | 'broken_answer' | 'cancelled';

/** Its message contains no resolved address, because the person who set the name sees it. */
export class SafeFetchError extends Error {
  readonly fault: SafeFetchFault;

  constructor(fault: SafeFetchFault, message: string) {
    super(message);
    this.name = 'SafeFetchError';
    this.fault = fault;
  }
}

/**
 * The only client for addresses that users set (OWASP API7, ASVS 5 1.3.6). Only http and https, only to public
 * addresses and to hosts that the operator permits. It connects to the address that was checked, so that a name which
 * resolves differently the second time gains nothing. No redirects, no proxy of the environment, no kept connections,
 * no inflating, at most 64 KB of the answer and 15 seconds unless the request sets other limits.
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
   * Validates an address when a user enters it; `field` is its place in the body. Its resolution may change, so `send`
   * checks again. Returns the address to store.
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

  /** The checked addresses of a name: one private address refuses them all, since any of them may be connected to. */
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

  /** @throws SafeFetchError where there is no answer; TypeError for headers that callers may not set. */
  async send(request: SafeRequest): Promise<SafeAnswer> {
    const target = readTarget(request.url, this.#allowedHosts);
    if (typeof target === 'string') throw new SafeFetchError('refused', `the address ${target}`);
    const headers = headersOf(request);
    const totalMs = request.totalMs ?? this.#totalMs;
    const deadline = AbortSignal.timeout(totalMs);
    const signal = request.signal ? AbortSignal.any([request.signal, deadline]) : deadline;
    try {
      return await this.#exchange(target, { ...request, headers, signal });
    } catch (error) {
      if (error instanceof SafeFetchError) throw error;
      if (request.signal?.aborted) throw new SafeFetchError('cancelled', 'the request was cancelled');
      if (deadline.aborted) throw tooLate(target, totalMs);
      throw faultOfConnection(error, target);
    }
  }

  #exchange(target: Target, request: JudgedRequest): Promise<SafeAnswer> {
    const isTls = target.url.protocol === 'https:';
    // A separate agent: no connection is shared or kept, and none uses a proxy of the environment.
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
        // After an unrequested 101 there is neither an answer nor an error.
        if (!isAnswered)
          reject(new SafeFetchError('broken_answer', `${target.host} ended without an answer`));
      });
      outgoing.on('error', reject);
      outgoing.on('response', (response) => {
        isAnswered = true;
        readAnswer(response, request.answerBytesMax ?? ANSWER_BYTES_MAX).then(resolve, reject);
      });
      outgoing.end(request.body);
    });
  }

  /** Node calls it for every name and connects to its result: the checked address. */
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
  // Nothing is inflated here, so a small answer cannot become large.
  sent['accept-encoding'] = 'identity';
  sent.connection = 'close';
  if (body !== undefined) sent['content-length'] = String(Buffer.byteLength(body));
  return sent;
}

async function readAnswer(response: IncomingMessage, bytesMax: number): Promise<SafeAnswer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Leaving the loop destroys the response and its connection.
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > bytesMax) break;
  }
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    body: Buffer.concat(chunks).subarray(0, bytesMax),
    isCut: bytes > bytesMax,
  };
}

function tooLate({ host }: Target, ms: number): SafeFetchError {
  return new SafeFetchError('timed_out', `${host} did not answer within ${ms / 1_000} s`);
}

/** The error of a failed connection or HTTP exchange, by the system's code alone: its text may contain an address. */
function faultOfConnection(error: unknown, { host }: Target): SafeFetchError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (/^HPE_|^ERR_HTTP|^ERR_STREAM|^Z_/.test(code))
    return new SafeFetchError('broken_answer', `${host} did not answer in HTTP (${code})`);
  const suffix = /^[A-Z][A-Z0-9_]{1,60}$/.test(code) ? ` (${code})` : '';
  return new SafeFetchError('unreachable', `the connection to ${host} failed${suffix}`);
}

/**
 * IPv4 outside of the public internet: IANA's special-purpose registry (RFC 6890 and its updates) without the globally
 * reachable rows, multicast and the reserved range above it.
 */
const CLOSED_IPV4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
];

/**
 * Only global unicast, 2000::/3, is public IPv6, which excludes loopback, unique local, link-local, multicast,
 * IPv4-mapped, NAT64 (64:ff9b::/96, 64:ff9b:1::/48) and all later assignments. Inside it these are closed: protocol
 * assignments with Teredo, documentation, 6to4 and documentation again; Teredo and 6to4 lead to any IPv4 address.
 */
const GLOBAL_IPV6: readonly [string, number] = ['2000::', 3];
const CLOSED_IPV6: readonly (readonly [string, number])[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
];

const closed4 = new BlockList();
for (const [address, bits] of CLOSED_IPV4) closed4.addSubnet(address, bits, 'ipv4');
const global6 = new BlockList();
global6.addSubnet(...GLOBAL_IPV6, 'ipv6');
const closed6 = new BlockList();
for (const [address, bits] of CLOSED_IPV6) closed6.addSubnet(address, bits, 'ipv6');

/** Whether an IP address, as Node writes it, is in the public internet. false for other texts. */
export function isPublicAddress(address: string): boolean {
  // A zone (fe80::1%eth0) belongs only to addresses of this machine's links.
  if (isIP(address) === 0 || address.includes('%')) return false;
  if (isIPv4(address)) return !closed4.check(address, 'ipv4');
  return global6.check(address, 'ipv6') && !closed6.check(address, 'ipv6');
}

/** Ports of http and https; any other requires an entry in OUTBOUND_ALLOWED_HOSTS. */
const OPEN_PORTS = new Set(['80', '443']);
const URL_CHARS_MAX = 2_048;
/** Names that mean this machine or its network everywhere (RFC 6761, RFC 6762, RFC 8375, RFC 9476). */
const LOCAL_NAMES = /(?:^|\.)(?:localhost|localdomain|local|internal|home\.arpa|alt|onion)$/;

/** An address whose text permits a request; its resolution is checked at the connection. */
export interface Target {
  url: URL;
  /** Name or IP address, without brackets and without a final dot. */
  host: string;
  /** Named by the operator: its address may be private, and its port is free where the entry names it. */
  isAllowed: boolean;
}

/** Hosts that the operator names, as a URL writes them: `host` permits the usual ports, `host:port` that port. */
export type AllowedHosts = ReadonlySet<string>;

/**
 * Parses an address that a user set. Returns a text if no request may be sent there: the reason, as a sentence without a
 * subject. Decimal, octal and hexadecimal forms of an IP address, full-width letters and the like are parsed by the URL
 * standard, so that the address of the connection is checked.
 */
export function readTarget(text: string, allowedHosts: AllowedHosts): Target | string {
  if (text.length > URL_CHARS_MAX) return `must have at most ${URL_CHARS_MAX} characters`;
  if (!URL.canParse(text)) return 'must be a whole address such as https://example.com/path';
  const url = new URL(text);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must begin with https:// or http://';
  if (url.username !== '' || url.password !== '') return 'must not hold a user or a password';
  url.hash = '';
  // The stored form may be longer, because characters outside ASCII are escaped.
  if (url.href.length > URL_CHARS_MAX) return `must have at most ${URL_CHARS_MAX} characters, escaped`;
  const name = url.hostname.replace(/\.$/, '');
  const host = name.replace(/^\[|\]$/g, '');
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  const isOpenPort = OPEN_PORTS.has(port);
  if (allowedHosts.has(`${name}:${port}`) || (isOpenPort && allowedHosts.has(name)))
    return { url, host, isAllowed: true };
  if (!isOpenPort) return BAD_PORT;
  if (isIP(host) !== 0) return isPublicAddress(host) ? { url, host, isAllowed: false } : NOT_PUBLIC;
  // A single-label name is completed by this machine's search domains, so it is private.
  if (!host.includes('.') || LOCAL_NAMES.test(host)) return NOT_PUBLIC;
  return { url, host, isAllowed: false };
}

export const BAD_PORT = 'must use port 80 or 443';
export const NOT_PUBLIC = 'must lead to the public internet, not to this machine or its network';
/** The remedy for an address of the operator's network, for people who enter one. */
export const ALLOW_REMEDY =
  'the operator can allow a host and port of its own network (OUTBOUND_ALLOWED_HOSTS)';
