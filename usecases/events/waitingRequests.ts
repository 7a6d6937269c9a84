/** Most calls of one transaction; a request is never split over two. */
export const BATCH_ROWS_MAX = 2_000;
/**
 * Waiting calls of an organization that start another transaction however many of it are under way. Fewer gather: a
 * transaction of ten calls costs twice as much a call as one of a hundred.
 */
export const GATHERED_ROWS_MIN = 500;
/**
 * Calls that may wait before new ones are refused with 503; it bounds memory and waiting time. One organization may
 * take half of the free room, so that it cannot shut out the others.
 */
export const QUEUE_ROWS_MAX = 40_000;

interface Waiting {
  readonly orgId: string;
  readonly rows: number;
}

/** An organization's waiting requests. */
interface Line<W> {
  requests: W[];
  rows: number;
}

/** Transactions of an organization and their calls. */
interface UnderWay {
  transactions: number;
  rows: number;
}

/**
 * Requests that wait for a transaction, by organization. An idle organization's request starts at once. While a
 * transaction of the organization is under way its requests gather, so that a batch grows with the load. A second one
 * starts once as many calls have gathered as the first one has: Postgres stores one half of the load while this process
 * reads the other half, instead of both waiting for each other. There is no timer.
 */
export class WaitingRequests<W extends Waiting> {
  /** In the order in which organizations get their turns. */
  readonly #lines = new Map<string, Line<W>>();
  readonly #underWay = new Map<string, UnderWay>();
  #rows = 0;

  /** Waiting calls of all organizations. */
  get rows(): number {
    return this.#rows;
  }

  /** Whether a request of so many calls may wait. */
  hasRoomFor(orgId: string, rows: number): boolean {
    if (this.#rows === 0) return true;
    const free = QUEUE_ROWS_MAX - this.#rows;
    const own = this.#lines.get(orgId)?.rows ?? 0;
    return own === 0 ? rows <= free : own + rows <= free;
  }

  add(waiting: W): void {
    const line = this.#lines.get(waiting.orgId);
    if (line) {
      line.requests.push(waiting);
      line.rows += waiting.rows;
    } else this.#lines.set(waiting.orgId, { requests: [waiting], rows: waiting.rows });
    this.#rows += waiting.rows;
  }

  /**
   * The requests of the next transaction; undefined: none may start. Organizations take turns. The caller must call
   * `end` with them after the transaction.
   */
  start(): W[] | undefined {
    for (const [orgId, line] of this.#lines) {
      const underWay = this.#underWay.get(orgId) ?? { transactions: 0, rows: 0 };
      if (!mayStart(line.rows, underWay)) continue;
      this.#lines.delete(orgId);
      const taken = takeBatch(line.requests);
      const rows = rowsOf(taken);
      this.#rows -= rows;
      underWay.transactions += 1;
      underWay.rows += rows;
      this.#underWay.set(orgId, underWay);
      // The organization's remaining requests go to the end of the line.
      if (line.requests.length > 0) this.#lines.set(orgId, { ...line, rows: line.rows - rows });
      return taken;
    }
    return undefined;
  }

  /** Notes the end of the transaction of these requests. */
  end(taken: readonly W[]): void {
    const [first] = taken;
    if (first === undefined) return;
    const underWay = this.#underWay.get(first.orgId);
    if (underWay === undefined) return;
    underWay.transactions -= 1;
    underWay.rows -= rowsOf(taken);
    if (underWay.transactions === 0) this.#underWay.delete(first.orgId);
  }
}

function mayStart(waitingRows: number, { transactions, rows }: UnderWay): boolean {
  if (transactions === 0 || waitingRows >= GATHERED_ROWS_MIN) return true;
  return transactions === 1 && waitingRows >= rows;
}

function rowsOf(requests: readonly Waiting[]): number {
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
