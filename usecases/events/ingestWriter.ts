import { type Database, SharedTransactionFailed } from '../../db/client.js';
import { identitiesOf, identityKey } from '../../db/events/callIdentities.js';
import type { StorableEvent } from '../../db/events/eventColumns.js';
import { CallsNotNew, insertEvents, recordRejections } from '../../db/events/ingest.js';
import { type InstrumentedService, recordScopes } from '../../db/events/pairedReports.js';
import { OrgDb, transactionForEach } from '../../db/orgDb.js';
import { repeatOnConflict } from '../../db/pgErrors.js';
import { type NewAlert, publishPolicyAlerts } from '../../db/policies/policyAlerts.js';
import { DomainError } from '../../domain/errors.js';
import type { CallRecord } from '../../domain/events/event.js';
import { jsonCharsBound } from '../../domain/events/jsonValues.js';
import type { UnjudgedReason } from '../../domain/policies/judge.js';
import type { PolicyType } from '../../domain/policies/policy.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import type { Prices } from '../pricing/priceBookHolder.js';
import { AssumedRules, type IngestRules, RulesChanged } from './assumedRules.js';
import { type Judgement, judgeBatch, judgeCostBy } from './judgeBatch.js';
import { type AssumedReports, KnownCalls, KnownCallsChanged, NOTHING_ASSUMED } from './knownCalls.js';
import { dropPayloads, type IngestRequest, type PreparedBatch, prepareBatch } from './prepareBatch.js';
import { type ResolvedReports, resolveDuplicateReports } from './resolveDuplicateReports.js';
import { SeenScopes } from './seenScopes.js';
import { SharingOrganizations } from './sharingOrganizations.js';
import { Streaks } from './streaks.js';
import { BATCH_ROWS_MAX, type Rest, type Start, WaitingRequests } from './waitingRequests.js';

/**
 * Characters of call JSON in one statement, because serializing it blocks other requests. A single call may exceed it.
 */
const PART_CHARS_MAX = 4_194_304;
/** Attempts at one batch while settings or policies change each time. */
const RULES_CHANGES_MAX = 8;
const RETRY_AFTER_SECONDS = 1;
/**
 * Batches in a row without a repeat after which an organization's calls are assumed to be new. That saves a quarter of
 * Postgres's time, and a repeat costs its batch a second attempt (docs/benchmarks.md).
 */
export const UNREPEATED_MIN = 30;
/**
 * The rest of calls that are reported again and again, as a multiple of the time that storing their last reports took:
 * a storm of repeats leaves most of the time to others (docs/benchmarks.md).
 */
const REST_OF_STORM = 12;
/** Its longest time, milliseconds: shorter than clients wait for an answer. */
const REST_MS_MAX = 280;
/**
 * Pause after the database ran out of disk space, milliseconds. Each attempt adds to the write-ahead log on the same
 * full disk, and a Postgres that cannot write its log stops, also for reads.
 */
const STORAGE_FULL_PAUSE_MS = 2_000;
/**
 * Most busy transactions. This process prepares calls about as fast as one core stores them, so more only take turns on
 * the cores, and each has a smaller batch.
 */
const BUSY_MAX = 3;
/** A transaction that takes longer, milliseconds, mostly waits for a lock: others may start beside it. */
const BUSY_MS_MAX = 100;
/**
 * Longest wait of a shared transaction for a lock, milliseconds: the calls of several organizations wait with it. Then
 * they are stored without the organization that waits.
 */
const SHARED_LOCK_WAIT_MS = 100;

export interface IngestOutcome {
  /** Calls of the request that are stored now, by this request or an earlier one. */
  accepted: number;
  /** Accepted calls that were stored before. */
  duplicates: number;
  /** Calls that were left out because their instrumentation scope is not the one that counts. */
  leftOut: number;
}

interface Pending {
  orgId: string;
  rows: number;
  identities: readonly string[];
  request: IngestRequest;
  resolve(outcome: IngestOutcome): void;
  reject(error: unknown): void;
}

interface Observer {
  queueRows(rows: number): void;
  batchRows(rows: number): void;
  alert?(policyType: PolicyType): void;
  /** Called for a policy that could not be evaluated for a stored call. */
  unjudged?(policyType: PolicyType, reason: UnjudgedReason): void;
  /** Called with the number of skipped patterns when this process compiles policies. */
  skippedPatterns?(patterns: number): void;
}

/**
 * The only write path of ingest. Requests of an organization that arrive while a transaction of it is under way join
 * the next one; each is answered after its commit with its counts. There is no timer: an idle writer stores immediately.
 * Small batches of several organizations share a transaction, each with a statement of its own.
 */
export class IngestWriter {
  readonly #database: Database;
  readonly #prices: Pick<Prices, 'of'>;
  readonly #observer: Observer;
  readonly #connectionsMax: number;
  readonly #rules: AssumedRules;
  readonly #waiting = new WaitingRequests<Pending>();
  readonly #seenScopes = new SeenScopes();
  readonly #knownCalls = new KnownCalls();
  readonly #sharing = new SharingOrganizations();
  readonly #unrepeated = new Streaks(UNREPEATED_MIN);
  #connections = 0;
  #busy = 0;
  #storageFull: { error: DomainError; untilMs: number } | undefined;

  constructor(database: Database, prices: Pick<Prices, 'of'>, connectionsMax: number, observer: Observer) {
    this.#database = database;
    this.#prices = prices;
    this.#connectionsMax = connectionsMax;
    this.#observer = observer;
    this.#rules = new AssumedRules(({ skippedPatterns }) => observer.skippedPatterns?.(skippedPatterns));
  }

  /**
   * Stores a request's calls; resolves after the commit. Errors: service_unavailable when too many calls wait or the
   * database is unreachable, storage_full. After an error nothing of the request is stored, and a retry is safe.
   */
  submit(request: IngestRequest): Promise<IngestOutcome> {
    const rows = rowsOf(request);
    if (rows === 0 && request.batch.rejections.length === 0)
      return Promise.resolve({ accepted: 0, duplicates: 0, leftOut: 0 });
    if (this.#storageFull && performance.now() < this.#storageFull.untilMs)
      return Promise.reject(this.#storageFull.error);
    if (!this.#waiting.hasRoomFor(request.orgId, rows)) {
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
      const identities = mainIdentitiesOf(request);
      this.#waiting.add({ orgId: request.orgId, rows, identities, request, resolve, reject });
      this.#observer.queueRows(this.#waiting.rows);
      this.#next();
    });
  }

  /** Starts transactions while connections are free and few transactions are busy. */
  #next(): void {
    while (this.#connections < this.#connectionsMax && this.#busy < BUSY_MAX) {
      const start = this.#waiting.start((orgId) => this.#sharing.mayShare(orgId));
      if (start === undefined) return;
      this.#observer.queueRows(this.#waiting.rows);
      this.#connections += 1;
      const started = performance.now();
      const leave = this.#countAsBusy();
      void this.#flush(start).then((again) => {
        this.#connections -= 1;
        leave();
        for (const rest of this.#waiting.end(start)) this.#keepResting(rest, performance.now() - started);
        for (const pending of again) this.#waiting.add(pending);
        this.#next();
      });
    }
  }

  /** Counts a transaction as busy until the returned function is called, and no longer than BUSY_MS_MAX. */
  #countAsBusy(): () => void {
    let counts = 1;
    this.#busy += counts;
    const leave = () => {
      clearTimeout(timer);
      this.#busy -= counts;
      counts = 0;
    };
    const timer = setTimeout(() => {
      leave();
      this.#next();
    }, BUSY_MS_MAX);
    return leave;
  }

  /** Lets the calls of a storm rest after a transaction that took so long. */
  #keepResting(rest: Rest, tookMs: number): void {
    setTimeout(
      () => {
        this.#waiting.release(rest);
        this.#next();
      },
      Math.min(tookMs * REST_OF_STORM, REST_MS_MAX),
    );
  }

  /** Stores the requests of a transaction and answers them; returns those that must be stored by another one. */
  async #flush({ batches, isShared }: Start<Pending>): Promise<readonly Pending[]> {
    this.#observer.batchRows(batches.flat().reduce((sum, { rows }) => sum + rows, 0));
    if (isShared) return this.#flushShared(batches);
    for (const taken of batches) await this.#flushOwn(taken);
    return [];
  }

  /**
   * Stores the batches of several organizations by one transaction. Where it fails because of some of them, nothing is
   * stored: these organizations share no more for now, and all requests wait again.
   */
  async #flushShared(batches: readonly Pending[][]): Promise<readonly Pending[]> {
    const ready: { orgId: string; taken: Pending[]; storing: Storing }[] = [];
    const again: Pending[] = [];
    for (const taken of batches) {
      const { orgId } = taken[0] as Pending;
      try {
        ready.push({ orgId, taken, storing: await this.#prepare(orgId, taken, true) });
      } catch {
        this.#storeAlone(orgId);
        again.push(...taken);
      }
    }
    if (ready.length === 0) return again;
    try {
      const orgIds = ready.map(({ orgId }) => orgId);
      const results = await transactionForEach(this.#database, orgIds, SHARED_LOCK_WAIT_MS, (inside, at) =>
        storeAll(inside, (ready[at] as (typeof ready)[number]).storing),
      );
      for (const [at, { orgId, taken, storing }] of ready.entries()) {
        answer(taken, this.#outcomesOf(orgId, storing, results[at] as Stored));
        this.#sharing.note(orgId, 1, storing.preparedMs);
      }
      return again;
    } catch (error) {
      if (error instanceof DomainError) {
        this.#notePause(error);
        for (const { taken } of ready) for (const pending of taken) pending.reject(error);
        return again;
      }
      const failed = error instanceof SharedTransactionFailed ? error.indexes : undefined;
      for (const [at, { orgId, taken }] of ready.entries()) {
        if (failed?.has(at) ?? true) this.#storeAlone(orgId);
        again.push(...taken);
      }
      return again;
    }
  }

  /** Stores requests of one organization by a transaction of its own. */
  async #flushOwn(taken: readonly Pending[]): Promise<void> {
    const { orgId } = taken[0] as Pending;
    try {
      answer(taken, await this.#store(orgId, taken));
    } catch (error) {
      if (error instanceof DomainError) this.#notePause(error);
      if (taken.length === 1 || error instanceof DomainError) {
        for (const pending of taken) pending.reject(error);
        return;
      }
      // A request that cannot be stored must not fail the others of the batch.
      for (const pending of taken) {
        await this.#store(orgId, [pending]).then(
          ([outcome]) => pending.resolve(outcome as IngestOutcome),
          (alone: unknown) => pending.reject(alone),
        );
      }
    }
  }

  /** Refuses requests for a while after the disk was full. */
  #notePause(error: DomainError): void {
    if (error.code === 'storage_full')
      this.#storageFull = { error, untilMs: performance.now() + STORAGE_FULL_PAUSE_MS };
  }

  /** Prepares, judges and stores by cached rules and known calls, and starts again when they are out of date. */
  async #store(orgId: string, taken: readonly Pending[]): Promise<IngestOutcome[]> {
    const orgDb = new OrgDb(this.#database, orgId);
    let mayAssume = true;
    for (let attempt = 1; ; attempt += 1) {
      const storing = await this.#prepare(orgId, taken, mayAssume);
      try {
        const stored = await repeatOnConflict(() => orgDb.transaction((inside) => storeAll(inside, storing)));
        this.#sharing.note(orgId, stored.statements, storing.preparedMs);
        return this.#outcomesOf(orgId, storing, stored);
      } catch (error) {
        this.#storeAlone(orgId);
        if (error instanceof CallsNotNew) continue;
        if (error instanceof KnownCallsChanged) {
          this.#knownCalls.forget(orgId, storing.prepared.events);
          mayAssume = false;
          continue;
        }
        if (!(error instanceof RulesChanged)) throw error;
        this.#rules.forget(orgId);
        if (attempt >= RULES_CHANGES_MAX) throw rulesChangedTooOften();
      }
    }
  }

  /** After a failure the organization's batches share no transaction and are not assumed to be new. */
  #storeAlone(orgId: string): void {
    this.#sharing.leave(orgId);
    this.#unrepeated.note(orgId, false);
  }

  /** Prepares and judges requests of an organization by cached rules and known calls. */
  async #prepare(orgId: string, taken: readonly Pending[], mayAssume: boolean): Promise<Storing> {
    const prices = await this.#prices.of(orgId);
    const rules = await this.#rules.of(new OrgDb(this.#database, orgId));
    const started = performance.now();
    const requests = taken.map(({ request }) => request);
    const prepared = await prepareBatch(requests, prices, rules.settings);
    const judgement = await judgeBatch(prepared.events, rules.judges);
    const newScopes = this.#seenScopes.findUnseen(orgId, prepared.events);
    if (rules.settings.dropPayloads) dropPayloads(prepared);
    const assumed = mayAssume ? this.#knownCalls.assume(orgId, prepared.events) : NOTHING_ASSUMED;
    const isNew = this.#unrepeated.isLong(orgId);
    const preparedMs = performance.now() - started;
    return { prepared, judgement, assumed, isNew, rules, prices, newScopes, preparedMs };
  }

  /** Remembers what a committed transaction stored; returns the outcome of each request. */
  #outcomesOf(orgId: string, storing: Storing, { stored, alerts, calls }: Stored): IngestOutcome[] {
    const { prepared, judgement, newScopes } = storing;
    this.#seenScopes.remember(orgId, newScopes);
    this.#unrepeated.note(orgId, calls.length === 0 && stored.size === prepared.events.length);
    this.#rememberCalls(orgId, prepared.events, stored, calls);
    this.#notifyObserver(judgement, stored, alerts);
    return countOutcomes(prepared, stored);
  }

  #rememberCalls(
    orgId: string,
    events: readonly StorableEvent[],
    stored: ReadonlySet<string>,
    calls: ResolvedReports['calls'],
  ): void {
    if (calls.some(({ superseded, added }) => superseded.length + added.length > 0))
      this.#knownCalls.noteRepeat(orgId);
    if (!this.#knownCalls.expectsRepeats(orgId)) return;
    const superseded = new Set(calls.flatMap((call) => call.superseded.map(({ id }) => id)));
    for (const event of events)
      if (event.supersededBy === null && stored.has(event.id) && !superseded.has(event.id))
        this.#knownCalls.remember(orgId, event);
    for (const { kept } of calls) this.#knownCalls.remember(orgId, kept);
  }

  #notifyObserver(judgement: Judgement, stored: ReadonlySet<string>, alerts: Iterable<NewAlert>): void {
    for (const { violation } of alerts) this.#observer.alert?.(violation.policyType);
    for (const [id, unjudged] of judgement.unjudged) {
      if (stored.has(id))
        for (const { policyType, reason } of unjudged) this.#observer.unjudged?.(policyType, reason);
    }
  }
}

function answer(taken: readonly Pending[], outcomes: readonly IngestOutcome[]): void {
  for (const [index, pending] of taken.entries()) pending.resolve(outcomes[index] as IngestOutcome);
}

function rulesChangedTooOften(): DomainError {
  const sentence =
    'the settings or policies of the organization change faster than calls can be stored; send these again';
  return new DomainError('service_unavailable', sentence, { retryAfterSeconds: RETRY_AFTER_SECONDS });
}

function rowsOf(request: IngestRequest): number {
  return request.batch.calls.length + request.batch.links.length;
}

/** The identity of each call by which other instrumentations report it, else its place in its trace. */
function mainIdentitiesOf({ batch }: IngestRequest): string[] {
  return batch.calls.flatMap((call) => {
    const [first] = identitiesOf(call);
    return first === undefined ? [] : [identityKey(first)];
  });
}

/** A batch with everything that storing it needs. */
interface Storing {
  prepared: PreparedBatch;
  judgement: Judgement;
  assumed: AssumedReports;
  /** The calls are assumed not to be stored. */
  isNew: boolean;
  rules: IngestRules;
  prices: PriceBook;
  newScopes: readonly InstrumentedService[];
  /** How long preparing and judging took, milliseconds. */
  preparedMs: number;
}

/** A stored batch: ids of new events, alerts, merged calls, and the number of statements that it took. */
interface Stored {
  stored: Set<string>;
  alerts: Iterable<NewAlert>;
  calls: ResolvedReports['calls'];
  statements: number;
}

/** Stores a batch and its alerts in the running transaction. */
async function storeAll(
  orgDb: OrgDb,
  { prepared, judgement, assumed, isNew, rules, prices, newScopes }: Storing,
): Promise<Stored> {
  const { events, links } = prepared;
  const stored = new Set<string>();
  const claimed = new Set<string>();
  const alerts = new Map<string, NewAlert>();
  let linksLeft = links;
  for (const part of partsOf(events)) {
    const possible = alertsOf(part, judgement);
    const result = await insertEvents(orgDb, { events: part, links: linksLeft, alerts: possible, isNew });
    linksLeft = [];
    if (result.rulesMark !== rules.mark) throw new RulesChanged();
    for (const id of result.stored) stored.add(id);
    for (const id of result.claimed) claimed.add(id);
    const made = new Set(result.alerted);
    for (const alert of possible) if (made.has(alert.id)) alerts.set(alert.id, alert);
  }
  const batch = { stored, claimed, assumed };
  const { alerts: changes, calls } = await resolveDuplicateReports(orgDb, events, batch, prices, {
    fresh: [...alerts.values()],
    alerts: judgement.alerts,
    violationsOf: judgement.violationsOf,
    judgeCost: judgeCostBy(rules.judges),
  });
  for (const id of changes.removedIds) alerts.delete(id);
  for (const alert of changes.added) alerts.set(alert.id, alert);
  if (rules.alertsWanted) await publishPolicyAlerts(orgDb, [...alerts.keys()]);
  await recordRejections(orgDb, prepared.refusals);
  await recordScopes(orgDb, newScopes);
  return { stored, alerts: alerts.values(), calls, statements: orgDb.statements };
}

/** Splits events into the parts of one statement each: at least one part, possibly empty. */
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

/** A stored call counts once; a second one with its id, in any request, is a duplicate. */
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
