import { DomainError } from '../domain/errors.js';
import { apiKeyHash, eventId } from '../domain/events/callHash.js';
import type { CallRecord, MappedBatch, Rejection, SpanLink } from '../domain/events/event.js';
import { resolveCalls } from '../domain/events/resolveCalls.js';
import type { PriceBook } from '../domain/pricing/priceBook.js';
import type { Database } from './client.js';
import { OrgDb } from './orgDb.js';
import type { Prices } from './priceBookHolder.js';
import type { StorableEvent } from './queries/eventColumns.js';
import { insertEvents, priceOf, recordRejections } from './queries/ingest.js';
import { settleTellings } from './queries/tellings.js';

/** Calls of one transaction at most; one request is never split over two. */
const BATCH_ROWS_MAX = 2_000;
/** Calls that may wait before new ones are refused with 503: bounds memory and the wait. */
const QUEUE_ROWS_MAX = 40_000;
/** Repeats of a batch that lost a deadlock or a serialization race. */
const CONFLICT_REPEATS_MAX = 5;
const RETRY_AFTER_SECONDS = 1;

/** One request's calls and who sent them. */
export interface IngestRequest {
  orgId: string;
  /** `key_…` of the key that sent it: part of every call's hash. */
  keyId: string;
  /** Stamped on calls that name no project: the workspace of the key. */
  defaultProjectId: string | null;
  batch: MappedBatch;
}

export interface IngestOutcome {
  /** Calls that are stored now, whether by this request or an earlier one. */
  accepted: number;
  /** Those of them that were stored before. */
  duplicates: number;
}

interface Pending {
  request: IngestRequest;
  resolve(outcome: IngestOutcome): void;
  reject(error: unknown): void;
}

interface Observer {
  queueRows(rows: number): void;
  batchRows(rows: number): void;
}

/**
 * The one write path behind every way in. Requests of an organization that arrive while all connections are busy are
 * gathered into the next transaction; each is answered after its commit with its own counts. No timer: an idle
 * writer stores at once.
 */
export class IngestWriter {
  readonly #database: Database;
  readonly #prices: Pick<Prices, 'of'>;
  readonly #observer: Observer;
  readonly #connectionsMax: number;
  readonly #queues = new Map<string, Pending[]>();
  #connections = 0;
  #queuedRows = 0;

  constructor(database: Database, prices: Pick<Prices, 'of'>, connectionsMax: number, observer: Observer) {
    this.#database = database;
    this.#prices = prices;
    this.#connectionsMax = connectionsMax;
    this.#observer = observer;
  }

  /**
   * Stores a request's calls; resolves after the commit. Errors: service_unavailable when too much is waiting or the
   * database is away, storage_full; then nothing of the request is stored, and sending it again is safe.
   */
  submit(request: IngestRequest): Promise<IngestOutcome> {
    const rows = rowsOf(request);
    if (rows === 0 && request.batch.rejections.length === 0)
      return Promise.resolve({ accepted: 0, duplicates: 0 });
    if (this.#queuedRows > 0 && this.#queuedRows + rows > QUEUE_ROWS_MAX) {
      return Promise.reject(
        new DomainError(
          'service_unavailable',
          'more calls are waiting than can be stored in time; send these again',
          {
            retryAfterSeconds: RETRY_AFTER_SECONDS,
          },
        ),
      );
    }
    return new Promise((resolve, reject) => {
      const queue = this.#queues.get(request.orgId);
      const pending = { request, resolve, reject };
      if (queue) queue.push(pending);
      else this.#queues.set(request.orgId, [pending]);
      this.#countQueued(rows);
      this.#next();
    });
  }

  #countQueued(rows: number): void {
    this.#queuedRows += rows;
    this.#observer.queueRows(this.#queuedRows);
  }

  /** Starts transactions while connections are free; organizations take turns. */
  #next(): void {
    while (this.#connections < this.#connectionsMax) {
      const first = this.#queues.entries().next();
      if (first.done) return;
      const [orgId, queue] = first.value;
      this.#queues.delete(orgId);
      const taken = takeBatch(queue);
      // What is left goes to the end of the line.
      if (queue.length > 0) this.#queues.set(orgId, queue);
      this.#connections += 1;
      void this.#flush(orgId, taken).finally(() => {
        this.#connections -= 1;
        this.#next();
      });
    }
  }

  async #flush(orgId: string, taken: Pending[]): Promise<void> {
    const rows = taken.reduce((sum, { request }) => sum + rowsOf(request), 0);
    this.#countQueued(-rows);
    this.#observer.batchRows(rows);
    try {
      const outcomes = await this.#store(orgId, taken);
      for (const [index, pending] of taken.entries()) pending.resolve(outcomes[index] as IngestOutcome);
    } catch (error) {
      if (taken.length === 1 || error instanceof DomainError) {
        for (const pending of taken) pending.reject(error);
        return;
      }
      // A request that cannot be stored must not cost the others theirs.
      for (const pending of taken) {
        await this.#store(orgId, [pending]).then(
          ([outcome]) => pending.resolve(outcome as IngestOutcome),
          (alone: unknown) => pending.reject(alone),
        );
      }
    }
  }

  async #store(orgId: string, taken: readonly Pending[]): Promise<IngestOutcome[]> {
    const prices = await this.#prices.of(orgId);
    const { events, owners } = prepare(
      taken.map((pending) => pending.request),
      prices,
    );
    const links = taken.flatMap(({ request }) => request.batch.links);
    const rejections = countRejections(taken.flatMap(({ request }) => request.batch.rejections));
    const orgDb = new OrgDb(this.#database, orgId);
    const stored = await repeatOnConflict(() =>
      orgDb.transaction(async (inside) => {
        const ids = await storeAll(inside, events, links, prices);
        await recordRejections(inside, rejections);
        return ids;
      }),
    );
    return countOutcomes(taken, events, owners, stored);
  }
}

function rowsOf(request: IngestRequest): number {
  return request.batch.calls.length + request.batch.links.length;
}

function takeBatch(queue: Pending[]): Pending[] {
  let rows = 0;
  let count = 0;
  for (const pending of queue) {
    rows += rowsOf(pending.request);
    if (count > 0 && rows > BATCH_ROWS_MAX) break;
    count += 1;
  }
  return queue.splice(0, count);
}

/** Calls of several requests as rows: one call told twice becomes one live row, then hashed and priced. */
function prepare(
  requests: readonly IngestRequest[],
  prices: PriceBook,
): { events: StorableEvent[]; owners: number[] } {
  const calls: CallRecord[] = [];
  const owners: number[] = [];
  requests.forEach((request, index) => {
    for (const call of request.batch.calls) {
      calls.push(call);
      owners.push(index);
    }
  });
  const links = requests.flatMap((request) => request.batch.links);
  const resolved = resolveCalls(calls, links);
  const events = resolved.map(({ call }, index): StorableEvent => {
    const request = requests[owners[index] as number] as IngestRequest;
    return storable(call, request.keyId, request.defaultProjectId, prices);
  });
  resolved.forEach(({ supersededBy }, index) => {
    if (supersededBy !== null)
      (events[index] as StorableEvent).supersededBy = (events[supersededBy] as StorableEvent).id;
  });
  return { events, owners };
}

/** Hashes and prices a call. */
export function storable(
  call: CallRecord,
  keyId: string,
  defaultProjectId: string | null,
  prices: PriceBook,
): StorableEvent {
  const hash = apiKeyHash(keyId, call);
  return {
    id: eventId(call, hash),
    apiKeyHash: hash,
    apiKeyId: keyId,
    call,
    price: priceOf(call, prices),
    projectId: call.projectId ?? defaultProjectId,
    supersededBy: null,
  };
}

async function storeAll(
  orgDb: OrgDb,
  events: readonly StorableEvent[],
  links: readonly SpanLink[],
  prices: PriceBook,
): Promise<Set<string>> {
  const stored = new Set<string>();
  for (let at = 0; at < Math.max(events.length, 1); at += BATCH_ROWS_MAX) {
    const part = events.slice(at, at + BATCH_ROWS_MAX);
    const result = await insertEvents(orgDb, part, at === 0 ? links : []);
    for (const id of result.stored) stored.add(id);
    await settleTellings(orgDb, part, result, prices);
  }
  return stored;
}

/** A call counts once as stored; a second one with its id, in whichever request, is a duplicate. */
function countOutcomes(
  taken: readonly Pending[],
  events: readonly StorableEvent[],
  owners: readonly number[],
  stored: ReadonlySet<string>,
): IngestOutcome[] {
  const outcomes = taken.map(() => ({ accepted: 0, duplicates: 0 }));
  const seen = new Set<string>();
  events.forEach((event, index) => {
    const outcome = outcomes[owners[index] as number] as IngestOutcome;
    outcome.accepted += 1;
    if (!stored.has(event.id) || seen.has(event.id)) outcome.duplicates += 1;
    seen.add(event.id);
  });
  return outcomes;
}

function countRejections(rejections: readonly Rejection[]) {
  const counts = new Map<string, { serviceName: string; scopeName: string; reason: string; count: number }>();
  for (const { serviceName, scopeName, reason } of rejections) {
    const key = `${serviceName}\u001f${scopeName}\u001f${reason}`;
    const entry = counts.get(key);
    if (entry) entry.count += 1;
    else counts.set(key, { serviceName, scopeName, reason, count: 1 });
  }
  return [...counts.values()].sort((a, b) => (a.reason < b.reason ? -1 : 1));
}

const CONFLICT_CODES = new Set(['40P01', '40001']);

async function repeatOnConflict<T>(work: () => Promise<T>): Promise<T> {
  for (let repeat = 0; ; repeat += 1) {
    try {
      return await work();
    } catch (error) {
      const cause = error instanceof Error ? (error.cause as { code?: string } | undefined) : undefined;
      if (repeat >= CONFLICT_REPEATS_MAX || !CONFLICT_CODES.has(cause?.code ?? '')) throw error;
    }
  }
}
