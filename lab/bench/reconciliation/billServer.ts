/**
 * A provider on the loopback interface that serves a generator's documents by window, width and page, like the
 * providers' admin APIs.
 */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { rfc3339 } from '../../bills/pages.js';
import type { BillDocument } from '../../generators/world.js';
import { type BucketText, readBucketTexts } from './bucketTexts.js';

export interface BillServer {
  /** `http://127.0.0.1:port`; it serves both providers' paths. */
  origin: string;
  /** The key for requests of an account's bills. */
  keyOf(provider: string, accountId: string): string;
  close(): Promise<void>;
}

const DAY_SECONDS = 86_400;
const WIDTHS: Readonly<Record<string, number>> = { '1h': 3_600, '1d': DAY_SECONDS };
/** Buckets of a page if the request has no limit. */
const DEFAULT_LIMIT = 7;

/** The feed of each path; '': a report without documents. */
const FEEDS: readonly [RegExp, BillDocument['feed'] | ''][] = [
  [/^\/v1\/organization\/costs$/, 'openai_costs'],
  [/^\/v1\/organization\/usage\/completions$/, 'openai_usage'],
  [/^\/v1\/organization\/usage\/[a-z_]+$/, ''],
  [/^\/v1\/organizations\/cost_report$/, 'anthropic_costs'],
  [/^\/v1\/organizations\/usage_report\/messages$/, 'anthropic_usage'],
];

/** Starts the server; it ignores documents that are files. */
export async function startBillServer(documents: readonly BillDocument[]): Promise<BillServer> {
  const buckets = new Map<string, BucketText[]>();
  for (const document of documents) {
    if (!FEEDS.some(([, feed]) => feed === document.feed)) continue;
    const key = feedKey(adminKey(document.provider, document.accountId), document.feed);
    const known = buckets.get(key) ?? [];
    known.push(...readBucketTexts(document.text));
    buckets.set(key, known);
  }
  // A kept connection must not end while the engine judges between two requests: the next one would be reset.
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) =>
    answer(request, response, buckets),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    keyOf: adminKey,
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()));
        server.closeAllConnections();
      }),
  };
}

const feedKey = (key: string, feed: string) => `${key} ${feed}`;

/** Has the prefix of the provider's keys, which connectors check. */
function adminKey(provider: string, accountId: string): string {
  return `${provider === 'openai' ? 'sk-admin-' : 'sk-ant-admin01-'}${Buffer.from(accountId).toString('base64url')}`;
}

function answer(
  request: IncomingMessage,
  response: ServerResponse,
  buckets: ReadonlyMap<string, BucketText[]>,
): void {
  const url = new URL(request.url ?? '/', 'http://provider');
  const feed = FEEDS.find(([path]) => path.test(url.pathname))?.[1];
  const send = (status: number, body: string) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(body);
  };
  if (feed === undefined) {
    send(404, '{"error":{"message":"Nothing is there."}}');
    return;
  }
  const key = request.headers['x-api-key'] ?? request.headers.authorization?.replace(/^Bearer /, '') ?? '';
  const known = buckets.get(feedKey(String(key), feed)) ?? [];
  send(200, page(known, url.searchParams, url.pathname.startsWith('/v1/organizations/')));
}

/** One page with a bucket for each width of the window, also for times without charges. */
function page(known: readonly BucketText[], query: URLSearchParams, isAnthropic: boolean): string {
  const width = WIDTHS[query.get('bucket_width') ?? '1d'] ?? DAY_SECONDS;
  const limit = Number(query.get('limit') ?? DEFAULT_LIMIT);
  const cursor = /^page_(\d+)$/.exec(query.get('page') ?? '')?.[1];
  const start =
    cursor === undefined
      ? timeOf(query.get('start_time') ?? query.get('starting_at'), width)
      : Number(cursor);
  const end = timeOf(query.get('end_time') ?? query.get('ending_at'), 1);
  const texts: string[] = [];
  let at = start;
  while (at < end && texts.length < limit) {
    const whole = known.find(
      ({ startSeconds, endSeconds }) => startSeconds === at && endSeconds - at > width,
    );
    // A document with wider buckets than requested cannot be divided.
    const served = whole ? whole.endSeconds - at : width;
    texts.push(bucketText(at, served, resultsOf(known, at, served), isAnthropic));
    at += served;
  }
  const next = at < end ? JSON.stringify(`page_${at}`) : 'null';
  return `{"object":"page","data":[${texts.join(',')}],"has_more":${at < end},"next_page":${next}}`;
}

function timeOf(text: string | null, width: number): number {
  const seconds = /^\d+$/.test(text ?? '') ? Number(text) : Date.parse(text ?? '') / 1_000;
  return Math.floor(seconds / width) * width;
}

/** The results of a bucket; finer buckets are summed, as in a daily report. */
function resultsOf(known: readonly BucketText[], start: number, width: number): string[] {
  const inside = known.filter(({ startSeconds }) => startSeconds >= start && startSeconds < start + width);
  const isFiner = inside.some(({ startSeconds, endSeconds }) => endSeconds - startSeconds < width);
  const results = inside.flatMap((bucket) => bucket.results);
  return isFiner ? addUp(results) : results;
}

type Result = { [name: string]: unknown };

/** Sums the counts of results with equal texts. Usage reports count in whole numbers. */
function addUp(texts: readonly string[]): string[] {
  const groups = new Map<string, Result>();
  for (const text of texts) {
    const result = JSON.parse(text) as Result;
    const key = JSON.stringify(result, (_, value: unknown) => (typeof value === 'number' ? 0 : value));
    const group = groups.get(key);
    if (group) addInto(group, result);
    else groups.set(key, result);
  }
  return [...groups.values()].map((result) => JSON.stringify(result));
}

function addInto(sum: Result, more: Result): void {
  for (const [name, value] of Object.entries(more)) {
    if (typeof value === 'number') sum[name] = Number(sum[name]) + value;
    else if (typeof value === 'object' && value !== null) addInto(sum[name] as Result, value as Result);
  }
}

function bucketText(start: number, width: number, results: readonly string[], isAnthropic: boolean): string {
  const times = isAnthropic
    ? `"starting_at":"${rfc3339(start)}","ending_at":"${rfc3339(start + width)}"`
    : `"object":"bucket","start_time":${start},"end_time":${start + width}`;
  return `{${times},"results":[${results.join(',')}]}`;
}
