/** Most calls of one transaction; a request is never split over two. */
export const BATCH_ROWS_MAX = 2_000;
/**
 * Waiting calls of an organization that start another transaction however many of it are under way. Fewer gather: a
 * transaction of ten calls costs twice as much a call as one of a hundred.
 */
export const GATHERED_ROWS_MIN = 500;
/**
 * Most calls of an organization that share a transaction with other organizations. More gain nothing from it: commit and
 * opening cost 250 µs, which is 2.5 µs for each of a hundred calls.
 */
export const SHARED_LINE_ROWS_MAX = 100;
/** Most calls of a shared transaction. */
export const SHARED_ROWS_MAX = 500;
/**
 * Calls that may wait before new ones are refused with 503; it bounds memory and waiting time. One organization may
 * take half of the free room, so that it cannot shut out the others.
 */
export const QUEUE_ROWS_MAX = 40_000;

interface Waiting {
  readonly orgId: string;
  readonly rows: number;
  /** By which other reports of its calls are recognised. */
  readonly identities: readonly string[];
}

/** An organization's waiting requests. */
interface Line<W> {
  /** Those that may be stored by the next transaction. */
  requests: W[];
  rows: number;
  /** Those whose calls rest, or which a transaction under way or an earlier held request reports too. */
  held: W[];
  heldRows: number;
  heldIdentities: Set<string>;
}

/** Transactions of an organization and their calls. */
interface UnderWay {
  transactions: number;
  rows: number;
  identities: Set<string>;
}

const NOTHING: ReadonlySet<string> = new Set();

/** Requests of the next transaction. */
export interface Start<W> {
  /** Each organization's. */
  readonly batches: readonly W[][];
  /** Whether they are stored by a shared transaction: also a single batch, if its organization may share. */
  readonly isShared: boolean;
}

/** Calls of an organization that rest together. */
export interface Rest {
  readonly orgId: string;
  readonly calls: ReadonlySet<string>;
}

/**
 * Requests that wait for a transaction, by organization. An idle organization's request starts at once. While a
 * transaction of the organization is under way its requests gather, so that a batch grows with the load. A second one
 * starts once as many calls have gathered as the first one has: Postgres stores one half of the load while this process
 * reads the other half, instead of both waiting for each other. There is no timer.
 *
 * Organizations with few waiting calls share a transaction, and its commit. Shared transactions follow the same rule
 * together: a second one starts once as many calls have gathered as the first one has. An organization's calls are not
 * divided over two of them, since each statement costs as much as ten calls.
 *
 * Two transactions of this process never report the same call: the later request is held until the first transaction
 * ends, and then joins a batch with all others that waited for it. So repeats of a call wait here and are merged in
 * memory, instead of each holding a connection that waits for a row lock. Other requests of the organization proceed.
 *
 * Where calls are reported again and again, merging their reports would occupy the machine without a pause. So the calls
 * of requests that were held rest after their transaction: further reports of them are held until `release`.
 */
export class WaitingRequests<W extends Waiting> {
  /** In the order in which organizations get their turns. */
  readonly #lines = new Map<string, Line<W>>();
  readonly #underWay = new Map<string, UnderWay>();
  readonly #rests = new Map<string, Set<Rest>>();
  /** Requests that were held once. */
  readonly #repeats = new WeakSet<W>();
  /** Shared transactions. */
  readonly #shared = { transactions: 0, rows: 0 };
  #rows = 0;

  /** Waiting calls of all organizations. */
  get rows(): number {
    return this.#rows;
  }

  /** Whether a request of so many calls may wait. */
  hasRoomFor(orgId: string, rows: number): boolean {
    if (this.#rows === 0) return true;
    const free = QUEUE_ROWS_MAX - this.#rows;
    const line = this.#lines.get(orgId);
    const own = line === undefined ? 0 : line.rows + line.heldRows;
    return own === 0 ? rows <= free : own + rows <= free;
  }

  add(waiting: W): void {
    const { orgId, rows, identities } = waiting;
    let line = this.#lines.get(orgId);
    if (line === undefined) {
      line = { requests: [], rows: 0, held: [], heldRows: 0, heldIdentities: new Set() };
      this.#lines.set(orgId, line);
    }
    const mustWait = [...this.#notNow(orgId), line.heldIdentities].some((some) => hasAny(identities, some));
    if (mustWait) hold(line, [waiting]);
    else {
      line.requests.push(waiting);
      line.rows += rows;
    }
    this.#rows += rows;
  }

  /**
   * The next transaction; undefined: none may start. Organizations take turns; `mayShare` names those that may share a
   * transaction. The caller must call `end` with it after the transaction.
   */
  start(mayShare: (orgId: string) => boolean = () => false): Start<W> | undefined {
    const { orgIds, rows, own } = this.#findNext(mayShare);
    if (own !== undefined) return { batches: [this.#take(own)], isShared: false };
    if (orgIds.length === 0) return undefined;
    this.#shared.transactions += 1;
    this.#shared.rows += rows;
    // In one order everywhere, so that two processes that share calls wait instead of deadlocking.
    return { batches: orgIds.sort().map((orgId) => this.#take(orgId)), isShared: true };
  }

  /** The organization whose own transaction is next, else those of the next shared one and their calls. */
  #findNext(mayShare: (orgId: string) => boolean): { orgIds: string[]; rows: number; own?: string } {
    const orgIds: string[] = [];
    let rows = 0;
    let own: string | undefined;
    let isOwnFirst = false;
    const isSharedPossible = mayStart(this.#rows, this.#shared);
    for (const [orgId, line] of this.#lines) {
      const underWay = this.#underWay.get(orgId);
      if (line.requests.length === 0 || !mayStart(line.rows, underWay ?? IDLE)) continue;
      if (line.rows > SHARED_LINE_ROWS_MAX || !mayShare(orgId)) {
        isOwnFirst ||= orgIds.length === 0;
        own ??= orgId;
        if (isOwnFirst || !isSharedPossible) break;
        continue;
      }
      if (!isSharedPossible || (underWay !== undefined && line.rows < this.#shared.rows)) continue;
      if (rows + line.rows > SHARED_ROWS_MAX) break;
      orgIds.push(orgId);
      rows += line.rows;
    }
    const isSharedNext = !isOwnFirst && orgIds.length > 0 && mayStart(rows, this.#shared);
    if (isSharedNext) return { orgIds, rows };
    return own === undefined ? { orgIds: [], rows: 0 } : { orgIds: [], rows: 0, own };
  }

  /** Takes an organization's requests of one transaction. */
  #take(orgId: string): W[] {
    const line = this.#lines.get(orgId);
    if (line === undefined) return [];
    const underWay = this.#underWay.get(orgId) ?? { ...IDLE, identities: new Set() };
    this.#lines.delete(orgId);
    const taken = takeBatch(line.requests);
    const rows = rowsOf(taken);
    this.#rows -= rows;
    line.rows -= rows;
    underWay.transactions += 1;
    underWay.rows += rows;
    for (const { identities } of taken) for (const one of identities) underWay.identities.add(one);
    this.#underWay.set(orgId, underWay);
    if (line.requests.length > 0) {
      const { free, held } = sift(line.requests, this.#notNow(orgId));
      line.requests = free;
      line.rows = rowsOf(free);
      hold(line, held);
    }
    // The organization's remaining requests go to the end of the line.
    if (line.requests.length + line.held.length > 0) this.#lines.set(orgId, line);
    return taken;
  }

  /**
   * Notes the end of a transaction. Returns the rests of calls that begin with it; the caller must then call `release`
   * later for each.
   */
  end({ batches, isShared }: Start<W>): Rest[] {
    if (isShared) {
      this.#shared.transactions -= 1;
      this.#shared.rows -= rowsOf(batches.flat());
    }
    return batches.flatMap((taken) => this.#endOf(taken) ?? []);
  }

  #endOf(taken: readonly W[]): Rest | undefined {
    const [first] = taken;
    const underWay = first && this.#underWay.get(first.orgId);
    if (first === undefined || underWay === undefined) return undefined;
    underWay.transactions -= 1;
    underWay.rows -= rowsOf(taken);
    for (const { identities } of taken) for (const one of identities) underWay.identities.delete(one);
    if (underWay.transactions === 0) this.#underWay.delete(first.orgId);
    const calls = taken.flatMap((request) => (this.#repeats.has(request) ? request.identities : []));
    const rest = calls.length === 0 ? undefined : { orgId: first.orgId, calls: new Set(calls) };
    if (rest) this.#rests.set(rest.orgId, (this.#rests.get(rest.orgId) ?? new Set()).add(rest));
    this.#free(first.orgId);
    return rest;
  }

  release(rest: Rest): void {
    const rests = this.#rests.get(rest.orgId);
    rests?.delete(rest);
    if (rests?.size === 0) this.#rests.delete(rest.orgId);
    this.#free(rest.orgId);
  }

  /** Calls of which no transaction may start now. */
  #notNow(orgId: string): ReadonlySet<string>[] {
    const running = this.#underWay.get(orgId)?.identities ?? NOTHING;
    return [running, ...[...(this.#rests.get(orgId) ?? [])].map(({ calls }) => calls)];
  }

  /** Lets held requests into the next transaction, except for those that must still wait. */
  #free(orgId: string): void {
    const line = this.#lines.get(orgId);
    if (line === undefined || line.held.length === 0) return;
    const { free, held } = sift(line.held, this.#notNow(orgId));
    Object.assign(line, { held: [], heldRows: 0, heldIdentities: new Set() });
    hold(line, held);
    for (const request of free) this.#repeats.add(request);
    line.requests = [...free, ...line.requests];
    line.rows += rowsOf(free);
  }
}

function hold<W extends Waiting>(line: Line<W>, requests: readonly W[]): void {
  for (const request of requests) {
    line.held.push(request);
    line.heldRows += request.rows;
    for (const one of request.identities) line.heldIdentities.add(one);
  }
}

/**
 * Separates requests with a call that must wait, or that share a call with an earlier request of that kind: so none is
 * overtaken for ever.
 */
function sift<W extends Waiting>(
  requests: readonly W[],
  notNow: readonly ReadonlySet<string>[],
): { free: W[]; held: W[] } {
  const free: W[] = [];
  const held: W[] = [];
  const heldIdentities = new Set<string>();
  for (const request of requests) {
    const { identities } = request;
    if (notNow.some((some) => hasAny(identities, some)) || hasAny(identities, heldIdentities)) {
      held.push(request);
      for (const one of identities) heldIdentities.add(one);
    } else free.push(request);
  }
  return { free, held };
}

function hasAny(identities: readonly string[], among: ReadonlySet<string>): boolean {
  return among.size > 0 && identities.some((one) => among.has(one));
}

const IDLE = { transactions: 0, rows: 0 };

function mayStart(waitingRows: number, { transactions, rows }: Omit<UnderWay, 'identities'>): boolean {
  if (transactions === 0 || waitingRows >= GATHERED_ROWS_MIN) return true;
  return transactions === 1 && waitingRows >= rows;
}

function rowsOf(requests: readonly Pick<Waiting, 'rows'>[]): number {
  return requests.reduce((sum, { rows }) => sum + rows, 0);
}

/** Removes the requests of one transaction from the front of a line. */
function takeBatch<W extends Waiting>(requests: W[]): W[] {
  let rows = 0;
  let count = 0;
  for (const request of requests) {
    rows += request.rows;
    if (count > 0 && rows > BATCH_ROWS_MAX) break;
    count += 1;
  }
  return requests.splice(0, count);
}
