import type { Database } from '../../db/client.js';
import type { StorableEvent } from '../../db/events/eventColumns.js';
import { insertEvents, type RefusedItems, recordRejections } from '../../db/events/ingest.js';
import { OrgDb } from '../../db/orgDb.js';
import { repeatOnConflict } from '../../db/pgErrors.js';
import { type NewAlert, publishPolicyAlerts } from '../../db/policies/policyAlerts.js';
import { inTurns, Turns } from '../../db/turns.js';
import { DomainError } from '../../domain/errors.js';
import { countedBy, SCOPE_NOT_COUNTED } from '../../domain/events/clients.js';
import type { CallRecord, MappedBatch, SpanLink } from '../../domain/events/event.js';
import { jsonCharsBound } from '../../domain/events/jsonValues.js';
import { apiKeyHash, eventId, resolveCallsInSteps } from '../../domain/events/resolveCalls.js';
import type { OrganizationSettings } from '../../domain/installation/settings.js';
import type { UnjudgedReason } from '../../domain/policies/judge.js';
import type { PolicyType } from '../../domain/policies/policy.js';
import { priceOf } from '../../domain/pricing/cost.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import type { Prices } from '../pricing/priceBookHolder.js';
import { AssumedRules, type IngestRules, RulesChanged } from './assumedRules.js';
import { type Judgement, judgeBatch, judgeCostBy } from './judgeBatch.js';
import { resolveDuplicateReports } from './resolveDuplicateReports.js';

/** Calls of one transaction at most; one request is never split over two. */
const BATCH_ROWS_MAX = 2_000;
/** Of what calls carry, as JSON, in one statement: writing it out holds up other requests. One call may have more. */
const PART_CHARS_MAX = 4_194_304;
/**
 * Calls that may wait before new ones are refused with 503: bounds memory and the wait. Of what is free an organization
 * may take half, so that one alone never keeps the others out.
 */
export const QUEUE_ROWS_MAX = 40_000;
/** Beginnings of one batch at most, where somebody changes settings or policies each time. */
const RULES_CHANGES_MAX = 8;
const RETRY_AFTER_SECONDS = 1;
/**
 * How long nothing is tried after the database found no space. Each attempt adds to its log, on the same full disk, and
 * a Postgres that cannot write its log stops and takes the reads with it.
 */
const STORAGE_FULL_PAUSE_MS = 2_000;

export interface IngestOutcome {
  /** Calls that are stored now, whether by this request or an earlier one. */
  accepted: number;
  /** Those of them that were stored before. */
  duplicates: number;
  /** Calls that were left out because their instrumentation scope is not the one that counts. */
  leftOut: number;
}

interface Pending {
  request: IngestRequest;
  resolve(outcome: IngestOutcome): void;
  reject(error: unknown): void;
}

interface Observer {
  queueRows(rows: number): void;
  batchRows(rows: number): void;
  alert?(policyType: PolicyType): void;
  /** A policy that could not be held against a call that is stored. */
  unjudged?(policyType: PolicyType, reason: UnjudgedReason): void;
  /** Patterns that are passed over, of policies that this process takes up. */
  skippedPatterns?(patterns: number): void;
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
  readonly #rules: AssumedRules;
  readonly #queues = new Map<string, Pending[]>();
  #connections = 0;
  readonly #queuedRowsOf = new Map<string, number>();
  #queuedRows = 0;
  #storageFull: { error: DomainError; untilMs: number } | undefined;

  constructor(database: Database, prices: Pick<Prices, 'of'>, connectionsMax: number, observer: Observer) {
    this.#database = database;
    this.#prices = prices;
    this.#connectionsMax = connectionsMax;
    this.#observer = observer;
    this.#rules = new AssumedRules(({ skippedPatterns }) => observer.skippedPatterns?.(skippedPatterns));
  }

  /**
   * Stores a request's calls; resolves after the commit. Errors: service_unavailable when too much is waiting or the
   * database is away, storage_full; then nothing of the request is stored, and sending it again is safe.
   */
  submit(request: IngestRequest): Promise<IngestOutcome> {
    const rows = rowsOf(request);
    if (rows === 0 && request.batch.rejections.length === 0)
      return Promise.resolve({ accepted: 0, duplicates: 0, leftOut: 0 });
    if (this.#storageFull && performance.now() < this.#storageFull.untilMs)
      return Promise.reject(this.#storageFull.error);
    if (!this.#hasRoomFor(request.orgId, rows)) {
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
      this.#countQueued(request.orgId, rows);
      this.#next();
    });
  }

  #hasRoomFor(orgId: string, rows: number): boolean {
    if (this.#queuedRows === 0) return true;
    const free = QUEUE_ROWS_MAX - this.#queuedRows;
    const own = this.#queuedRowsOf.get(orgId) ?? 0;
    return own === 0 ? rows <= free : own + rows <= free;
  }

  #countQueued(orgId: string, rows: number): void {
    const own = (this.#queuedRowsOf.get(orgId) ?? 0) + rows;
    if (own === 0) this.#queuedRowsOf.delete(orgId);
    else this.#queuedRowsOf.set(orgId, own);
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
    this.#countQueued(orgId, -rows);
    this.#observer.batchRows(rows);
    try {
      const outcomes = await this.#store(orgId, taken);
      for (const [index, pending] of taken.entries()) pending.resolve(outcomes[index] as IngestOutcome);
    } catch (error) {
      if (error instanceof DomainError && error.code === 'storage_full')
        this.#storageFull = { error, untilMs: performance.now() + STORAGE_FULL_PAUSE_MS };
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

  /** Prepares, judges and stores by the rules as they are remembered, and begins again when they no longer hold. */
  async #store(orgId: string, taken: readonly Pending[]): Promise<IngestOutcome[]> {
    const prices = await this.#prices.of(orgId);
    const orgDb = new OrgDb(this.#database, orgId);
    const requests = taken.map(({ request }) => request);
    for (let attempt = 1; ; attempt += 1) {
      const rules = await this.#rules.of(orgDb);
      const prepared = await prepareBatch(requests, prices, rules.settings);
      const judgement = await judgeBatch(prepared.events, rules.judges);
      if (rules.settings.dropPayloads) dropPayloads(prepared);
      try {
        const { stored, alerts } = await repeatOnConflict(() =>
          orgDb.transaction((inside) => storeAll(inside, { prepared, judgement, rules, prices })),
        );
        this.#notifyObserver(judgement, stored, alerts);
        return countOutcomes(prepared, stored);
      } catch (error) {
        if (!(error instanceof RulesChanged)) throw error;
        this.#rules.forget(orgId);
        if (attempt >= RULES_CHANGES_MAX) throw rulesChangedTooOften();
      }
    }
  }

  #notifyObserver(judgement: Judgement, stored: ReadonlySet<string>, alerts: Iterable<NewAlert>): void {
    for (const { violation } of alerts) this.#observer.alert?.(violation.policyType);
    for (const [id, unjudged] of judgement.unjudged) {
      if (stored.has(id))
        for (const { policyType, reason } of unjudged) this.#observer.unjudged?.(policyType, reason);
    }
  }
}

function rulesChangedTooOften(): DomainError {
  const sentence =
    'the settings or policies of the organization change faster than calls can be stored; send these again';
  return new DomainError('service_unavailable', sentence, { retryAfterSeconds: RETRY_AFTER_SECONDS });
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

/** A batch with everything by which it is stored. */
interface Storing {
  prepared: PreparedBatch;
  judgement: Judgement;
  rules: IngestRules;
  prices: PriceBook;
}

/** Stores a batch and its alerts in the running transaction: ids of the events that are new, and the alerts. */
async function storeAll(
  orgDb: OrgDb,
  { prepared, judgement, rules, prices }: Storing,
): Promise<{ stored: Set<string>; alerts: Iterable<NewAlert> }> {
  const { events, links } = prepared;
  const stored = new Set<string>();
  const claimed = new Set<string>();
  const alerts = new Map<string, NewAlert>();
  let linksLeft = links;
  for (const part of partsOf(events)) {
    const possible = alertsOf(part, judgement);
    const result = await insertEvents(orgDb, part, linksLeft, possible);
    linksLeft = [];
    if (result.rulesMark !== rules.mark) throw new RulesChanged();
    for (const id of result.stored) stored.add(id);
    for (const id of result.claimed) claimed.add(id);
    const made = new Set(result.alerted);
    for (const alert of possible) if (made.has(alert.id)) alerts.set(alert.id, alert);
  }
  const changes = await resolveDuplicateReports(orgDb, events, { stored, claimed }, prices, {
    fresh: [...alerts.values()],
    violationsOf: judgement.violationsOf,
    judgeCost: judgeCostBy(rules.judges),
  });
  for (const id of changes.removedIds) alerts.delete(id);
  for (const alert of changes.added) alerts.set(alert.id, alert);
  if (rules.alertsWanted) await publishPolicyAlerts(orgDb, [...alerts.keys()]);
  await recordRejections(orgDb, prepared.refusals);
  return { stored, alerts: alerts.values() };
}

/** What one statement stores: at least one part, which may be empty. */
function* partsOf(events: readonly StorableEvent[]): Generator<readonly StorableEvent[]> {
  let from = 0;
  let chars = 0;
  for (const [at, { call }] of events.entries()) {
    const more = payloadChars(call);
    const isFull = at - from >= BATCH_ROWS_MAX || chars + more > PART_CHARS_MAX;
    if (isFull && at > from) {
      yield events.slice(from, at);
      from = at;
      chars = 0;
    }
    chars += more;
  }
  yield events.slice(from);
}

function payloadChars({ payload, toolInput, toolOutput, service }: CallRecord): number {
  const carried = [payload, toolInput, toolOutput, service];
  return carried.reduce<number>((sum, json) => sum + jsonCharsBound(json, PART_CHARS_MAX), 0);
}

/** The alerts of events, each event's once. */
function alertsOf(events: readonly StorableEvent[], { alerts }: Judgement): NewAlert[] {
  if (alerts.size === 0) return [];
  return [...new Set(events.map(({ id }) => id))].flatMap((id) => alerts.get(id) ?? []);
}

/** A call counts once as stored; a second one with its id, in whichever request, is a duplicate. */
function countOutcomes(prepared: PreparedBatch, stored: ReadonlySet<string>): IngestOutcome[] {
  const outcomes = prepared.leftOut.map((leftOut) => ({ accepted: 0, duplicates: 0, leftOut }));
  const seen = new Set<string>();
  prepared.events.forEach((event, index) => {
    const outcome = outcomes[prepared.owners[index] as number] as IngestOutcome;
    outcome.accepted += 1;
    if (!stored.has(event.id) || seen.has(event.id)) outcome.duplicates += 1;
    seen.add(event.id);
  });
  return outcomes;
}

export interface IngestRequest {
  orgId: string;
  /** `key_…` of the key that sent it: part of every call's hash. */
  keyId: string;
  /** Stamped on calls that name no project: the workspace of the key. */
  defaultProjectId: string | null;
  batch: MappedBatch;
}

/** Requests of one organization as what one transaction stores. */
export interface PreparedBatch {
  events: StorableEvent[];
  /** Index of the request of each event. */
  owners: number[];
  /** Spans that are no calls, or whose calls do not count. */
  links: SpanLink[];
  /** Items that are not stored, counted by who sent them and why. */
  refusals: RefusedItems[];
  /** Calls of each request that do not count. */
  leftOut: number[];
}

/**
 * Calls of several requests as rows: those that do not count are left out, one call reported twice becomes one live row,
 * then each is hashed and priced. Other requests are served meanwhile.
 */
export async function prepareBatch(
  requests: readonly IngestRequest[],
  prices: PriceBook,
  settings: OrganizationSettings,
): Promise<PreparedBatch> {
  const counts = countedBy(settings.countedScopes);
  const calls: CallRecord[] = [];
  const owners: number[] = [];
  const links = requests.flatMap((request) => request.batch.links);
  const leftOut = requests.map(() => 0);
  const refused = requests.flatMap(({ batch, defaultProjectId: projectId }) =>
    batch.rejections.map(
      ({ serviceName, scopeName, reason }): Refused => ({ projectId, serviceName, scopeName, reason }),
    ),
  );
  requests.forEach((request, index) => {
    for (const call of request.batch.calls) {
      if (counts(call)) {
        calls.push(call);
        owners.push(index);
        continue;
      }
      // As any span that is no call: it still shows what lies inside what.
      if (call.trace !== null) links.push(call.trace);
      leftOut[index] = (leftOut[index] as number) + 1;
      const { serviceName, scopeName } = call;
      refused.push({
        projectId: request.defaultProjectId,
        serviceName,
        scopeName,
        reason: SCOPE_NOT_COUNTED,
      });
    }
  });
  const resolved = await inTurns(resolveCallsInSteps(calls, links));
  const events: StorableEvent[] = [];
  const turns = new Turns();
  for (const [index, { call }] of resolved.entries()) {
    const request = requests[owners[index] as number] as IngestRequest;
    events.push(storable(call, request.keyId, request.defaultProjectId, prices));
    if (turns.isOver()) await turns.next();
  }
  resolved.forEach(({ supersededBy }, index) => {
    if (supersededBy === null) return;
    const [report, winner] = [events[index] as StorableEvent, events[supersededBy] as StorableEvent];
    report.supersededBy = winner.id;
    // Nobody named a project, and only the report's key is of a workspace.
    winner.projectId ??= report.projectId;
  });
  return { events, owners, links, refusals: countRefused(refused), leftOut };
}

/** Takes off what the calls said, last of all: until then they can be judged by it. */
export function dropPayloads({ events }: PreparedBatch): void {
  for (const event of events) event.call = withoutPayload(event.call);
}

/**
 * What a call said and did, and what its client added about itself, is gone, and with it the number that would confirm
 * who guesses a prompt; its labels, usage and times stay.
 */
function withoutPayload(call: CallRecord): CallRecord {
  return { ...call, payload: null, toolInput: null, toolOutput: null, service: null, promptHash: null };
}

/** Hashes and prices a call. */
function storable(
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

type Refused = Omit<RefusedItems, 'count'>;

function countRefused(refused: readonly Refused[]): RefusedItems[] {
  const counts = new Map<string, RefusedItems>();
  for (const item of refused) {
    const key = JSON.stringify([item.projectId, item.serviceName, item.scopeName, item.reason]);
    const entry = counts.get(key);
    if (entry) entry.count += 1;
    else counts.set(key, { ...item, count: 1 });
  }
  return [...counts.values()].sort((a, b) => (a.reason < b.reason ? -1 : 1));
}
