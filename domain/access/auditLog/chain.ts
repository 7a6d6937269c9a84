import { type AuditRecord, auditText, FIRST_PREV_HASH } from './record.js';

/** A row of the log with its two hashes, in hex. */
export interface ChainedRecord extends AuditRecord {
  prevHash: string;
  hash: string;
}

/** A place in a chain: the hash of row `seq` stands for that row and all before it. */
export interface ChainPoint {
  seq: number;
  hash: string;
}

/** Who says that the chain went on to a row: the head beside it, or an anchor outside the database. */
export type Witness = 'head' | 'anchor';

/** What shows that a chain is not as it was written. */
export type ChainFault =
  /** The row is not what its hash was made of. */
  | { kind: 'row_edited'; seq: number }
  /** The row does not follow from the one before, which was written anew, or the row was. */
  | { kind: 'row_not_following'; seq: number }
  | { kind: 'rows_missing'; fromSeq: number; toSeq: number }
  /** The end of the chain is gone. */
  | { kind: 'tail_missing'; fromSeq: number; toSeq: number; witness: Witness }
  /** The head beside the chain names another row, or another hash, than the chain ends with. */
  | { kind: 'head_differs'; seq: number; headSeq: number }
  /** An anchor has seen another row: the chain was written anew somewhere after `agreedSeq`, up to `seq`. */
  | { kind: 'rebuilt'; seq: number; agreedSeq: number };

/** Faults that are kept; of more only the number is. */
const FAULTS_KEPT_MAX = 100;

export interface ChainWalkOptions {
  /** sha256 over the bytes of a hash (hex) and a text, as hex. */
  digest(prevHash: string, text: string): string;
  /** From where the chain is to be followed: a checkpoint; the beginning where there is none. */
  start?: ChainPoint | undefined;
  /** Hashes that anchors have seen, by row. One row may have several where the anchors contradict each other. */
  anchors?: ReadonlyMap<number, readonly string[]>;
}

/** Follows a chain row by row and remembers what is wrong with it. Holds no rows. */
export class ChainWalk {
  readonly #options: ChainWalkOptions;
  readonly #start: ChainPoint;
  #last: ChainPoint;
  #agreedSeq: number;
  #rows = 0;
  #anchored = 0;
  #faultCount = 0;
  readonly #faults: ChainFault[] = [];

  constructor(options: ChainWalkOptions) {
    this.#options = options;
    this.#start = options.start ?? { seq: 0, hash: FIRST_PREV_HASH };
    this.#last = this.#start;
    this.#agreedSeq = this.#start.seq;
    if (this.#start.seq > 0) this.#compareAnchors(this.#start);
  }

  /** The next row by its number. After a fault the walk goes on from what is stored, so that it finds the next one. */
  next(record: ChainedRecord): void {
    this.#rows += 1;
    const { seq, hash } = record;
    if (seq > this.#last.seq + 1)
      this.#add({ kind: 'rows_missing', fromSeq: this.#last.seq + 1, toSeq: seq - 1 });
    const isEdited = this.#options.digest(record.prevHash, auditText(record)) !== hash;
    if (isEdited) this.#add({ kind: 'row_edited', seq });
    else if (seq === this.#last.seq + 1 && record.prevHash !== this.#last.hash)
      this.#add({ kind: 'row_not_following', seq });
    this.#last = { seq, hash };
    this.#compareAnchors(this.#last);
  }

  #compareAnchors(point: ChainPoint): void {
    const seen = this.#options.anchors?.get(point.seq);
    if (!seen) return;
    this.#anchored += 1;
    if (seen.every((hash) => hash === point.hash)) this.#agreedSeq = point.seq;
    else this.#add({ kind: 'rebuilt', seq: point.seq, agreedSeq: this.#agreedSeq });
  }

  /** Compares the end of the chain with the head beside it and with the newest anchor. */
  end(head: ChainPoint | undefined): ChainResult {
    const { seq, hash } = this.#last;
    const newestAnchor = Math.max(0, ...(this.#options.anchors?.keys() ?? []));
    if (head && head.seq > seq)
      this.#add({ kind: 'tail_missing', fromSeq: seq + 1, toSeq: head.seq, witness: 'head' });
    else if (seq > 0 && (head?.seq !== seq || head.hash !== hash))
      this.#add({ kind: 'head_differs', seq, headSeq: head?.seq ?? 0 });
    if (newestAnchor > seq)
      this.#add({ kind: 'tail_missing', fromSeq: seq + 1, toSeq: newestAnchor, witness: 'anchor' });
    return {
      rows: this.#rows,
      startSeq: this.#start.seq,
      lastSeq: seq,
      anchorsCompared: this.#anchored,
      agreedSeq: this.#agreedSeq,
      faults: this.#faults,
      faultCount: this.#faultCount,
    };
  }

  #add(fault: ChainFault): void {
    this.#faultCount += 1;
    if (this.#faults.length < FAULTS_KEPT_MAX) this.#faults.push(fault);
  }
}

/** What a walk has found. */
export interface ChainResult {
  rows: number;
  /** The checkpoint that it began with; 0 for the beginning. */
  startSeq: number;
  lastSeq: number;
  /** Rows that an anchor had seen. */
  anchorsCompared: number;
  /** The last row at which all anchors agreed: it and all before it are as they were. */
  agreedSeq: number;
  /** The first ones. */
  faults: readonly ChainFault[];
  faultCount: number;
}
