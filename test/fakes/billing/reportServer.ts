/**
 * The common part of the loopback providers of bills: an HTTP server that checks the key and the parameters, pages
 * through the buckets with opaque tokens, injects faults, and records the requests.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exactJson } from '../../../lab/bills/exactJson.js';
import type { BucketResults } from '../../../lab/bills/pages.js';
import { selectBuckets } from './aggregate.js';
import { type Fault, FaultSwitch } from './faults.js';
import {
  invalid,
  type ProviderError,
  Refused,
  type ReportRules,
  readQuery,
  readReportQuery,
  type TimeParameters,
} from './reportQuery.js';
import type { ProviderTruth } from './truth.js';

/** One answered request; no part of the key is recorded. */
export interface RecordedRequest {
  method: string;
  path: string;
  report: string | null;
  /** Parameters without the `[]` of lists. */
  query: Record<string, string[]>;
  /** 0 when it was left hanging or broken off. */
  status: number;
}

export interface BillingFake {
  /** `http://127.0.0.1:port`, without a path. */
  origin: string;
  port: number;
  requests: RecordedRequest[];
  faults: FaultSwitch;
  /** Replaces its data. */
  setTruth(truth: ProviderTruth): void;
  /** Puts another bucket in the place of the one that starts at the same time: a restated day. */
  restate(report: string, bucket: BucketResults): void;
  /** Invalidates all issued page tokens. */
  invalidatePages(): void;
  /** Limits the buckets of pages, or of one report's pages, whatever is requested; null removes the limit. */
  limitPages(buckets: number | null, report?: string): void;
  close(): Promise<void>;
}

export interface BillingFakeOptions {
  truth: ProviderTruth;
  /** The key, or several keys of the one account. */
  adminKey: string | readonly string[];
  /** Buckets that start later are not returned. Default: the clock. */
  nowSeconds?: () => number;
}

/** The specific parts of one provider. */
export interface BillingProtocol extends TimeParameters {
  reports: Readonly<Record<string, ReportRules>>;
  /** The fault of the request's headers, or undefined. */
  authenticate(headers: IncomingMessage['headers'], keys: readonly string[]): ProviderError | undefined;
  denied: ProviderError;
  errorBody(error: ProviderError, requestId: string): unknown;
  headers(truth: ProviderTruth, requestId: string): Record<string, string>;
  page(buckets: readonly BucketResults[], nextPage: string | null): unknown;
  /** Answers besides the reports. */
  extra(path: string, truth: ProviderTruth): unknown;
  tokenPrefix: string;
}

/** Starts a provider on a free loopback port. */
export async function startBillingFake(
  options: BillingFakeOptions,
  protocol: BillingProtocol,
): Promise<BillingFake> {
  const state = new ProviderState(options, protocol);
  const server = createServer((request, response) => state.handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    port,
    requests: state.requests,
    faults: state.faults,
    setTruth: (truth) => state.setTruth(truth),
    restate: (report, bucket) => state.restate(report, bucket),
    invalidatePages: () => state.invalidatePages(),
    limitPages: (buckets, report) => state.limitPages(buckets, report),
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()));
        server.closeAllConnections();
      }),
  };
}

class ProviderState {
  readonly requests: RecordedRequest[] = [];
  readonly faults = new FaultSwitch();
  readonly #protocol: BillingProtocol;
  readonly #keys: readonly string[];
  readonly #nowSeconds: () => number;
  #truth: ProviderTruth;
  #generation = 0;
  #pageLimit: { buckets: number; report: string | undefined } | null = null;

  constructor(options: BillingFakeOptions, protocol: BillingProtocol) {
    this.#protocol = protocol;
    this.#truth = options.truth;
    this.#keys = typeof options.adminKey === 'string' ? [options.adminKey] : options.adminKey;
    this.#nowSeconds = options.nowSeconds ?? (() => Date.now() / 1_000);
  }

  setTruth(truth: ProviderTruth): void {
    this.#truth = truth;
  }

  restate(report: string, bucket: BucketResults): void {
    const others = (this.#truth.reports[report] ?? []).filter(
      (known) => known.startSeconds !== bucket.startSeconds,
    );
    this.#truth = { ...this.#truth, reports: { ...this.#truth.reports, [report]: [...others, bucket] } };
  }

  invalidatePages(): void {
    this.#generation += 1;
  }

  limitPages(buckets: number | null, report?: string): void {
    this.#pageLimit = buckets === null ? null : { buckets, report };
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', 'http://fake');
    const report =
      Object.keys(this.#protocol.reports).find(
        (name) => this.#protocol.reports[name]?.path === url.pathname,
      ) ?? null;
    const query = readQuery(url.searchParams);
    const recorded = { method: request.method ?? '', path: url.pathname, report, query, status: 0 };
    this.requests.push(recorded);
    const requestId = `req_fake_${this.requests.length}`;
    const fault = this.faults.next(report);
    if (fault?.kind === 'hang') return;
    const headers = {
      'content-type': 'application/json',
      ...this.#protocol.headers(this.#truth, requestId),
      ...(fault && 'headers' in fault ? fault.headers : {}),
    };
    const send = (status: number, body: string, more: Record<string, string> = {}) => {
      recorded.status = status;
      response.writeHead(status, { ...headers, ...more });
      response.end(body);
    };
    try {
      const refused = fault && this.#refusalOf(fault);
      if (refused) throw refused;
      const unauthenticated = this.#protocol.authenticate(request.headers, this.#keys);
      if (unauthenticated) throw new Refused(unauthenticated);
      if (request.method !== 'GET') throw new Refused(notFound(url.pathname));
      const body = this.#answer(url.pathname, report, query);
      if (fault?.kind === 'wrong_shape') send(200, fault.body);
      else if (fault?.kind === 'large_body') send(200, `"${'x'.repeat(fault.bytes)}"`);
      else if (fault?.kind === 'redirect') send(307, '', { location: fault.location });
      else if (fault?.kind === 'cut_body') cutOff(response, headers, body);
      else send(200, body);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      const retryAfter = fault && 'retryAfter' in fault ? fault.retryAfter : undefined;
      send(
        error.error.status,
        exactJson(this.#protocol.errorBody(error.error, requestId)),
        retryAfter === undefined ? {} : { 'retry-after': retryAfter },
      );
    }
  }

  #refusalOf(fault: Fault): Refused | undefined {
    if (fault.kind === 'outage') {
      const type = fault.status === 404 ? 'not_found' : 'server';
      return new Refused({ status: fault.status, type, message: 'The service is not available right now.' });
    }
    if (fault.kind === 'rate_limit') {
      return new Refused({ status: 429, type: 'rate_limit', message: 'Too many requests.' });
    }
    return fault.kind === 'denied' ? new Refused(this.#protocol.denied) : undefined;
  }

  #answer(path: string, report: string | null, query: RecordedRequest['query']): string {
    const rules = report === null ? undefined : this.#protocol.reports[report];
    if (report !== null && rules) return this.#page(report, rules, query);
    const extra = this.#protocol.extra(path, this.#truth);
    if (extra === undefined) throw new Refused(notFound(path));
    return exactJson(extra);
  }

  #page(report: string, rules: ReportRules, query: RecordedRequest['query']): string {
    const asked = readReportQuery(rules, this.#protocol, query, this.#nowSeconds());
    const signature = JSON.stringify([
      report,
      asked.endSeconds,
      asked.widthSeconds,
      [...asked.groupBy].sort(),
    ]);
    const token = query.page?.[0];
    const fromSeconds = token === undefined ? asked.startSeconds : this.#readToken(token, signature);
    const buckets = selectBuckets(this.#truth.reports[report] ?? [], {
      ...asked,
      startSeconds: fromSeconds,
      dimensions: rules.dimensions,
    });
    const limit = this.#pageLimit;
    const isLimited = limit !== null && (limit.report === undefined || limit.report === report);
    const size = Math.min(asked.limit, isLimited ? limit.buckets : asked.limit);
    const next = buckets[size];
    const nextPage =
      next === undefined ? null : this.#token([this.#generation, next.startSeconds, signature]);
    return exactJson(this.#protocol.page(buckets.slice(0, size), nextPage));
  }

  #token(content: [generation: number, startSeconds: number, signature: string]): string {
    return this.#protocol.tokenPrefix + Buffer.from(JSON.stringify(content)).toString('base64url');
  }

  #readToken(token: string, signature: string): number {
    const unknown = invalid('page: the page token is invalid or has expired.', 'page');
    if (!token.startsWith(this.#protocol.tokenPrefix)) throw unknown;
    const text = Buffer.from(token.slice(this.#protocol.tokenPrefix.length), 'base64url').toString();
    let content: unknown;
    try {
      content = JSON.parse(text);
    } catch {
      throw unknown;
    }
    const [generation, startSeconds, of] = content as [number, number, string];
    if (generation !== this.#generation || of !== signature) throw unknown;
    return startSeconds;
  }
}

function notFound(path: string): ProviderError {
  return { status: 404, type: 'not_found', message: `Nothing is at ${path}.` };
}

/** Promises the whole body and sends half of it. */
function cutOff(response: ServerResponse, headers: Record<string, string>, body: string): void {
  response.writeHead(200, { ...headers, 'content-length': String(Buffer.byteLength(body)) });
  response.write(body.slice(0, Math.floor(body.length / 2)), () => response.destroy());
}
