import { createHash } from 'node:crypto';
import { CancelledFailure } from '@temporalio/activity';
import type { BillingFileOptions } from '../adapters/billing/file.js';
import { type BillingSource, findBillingPage, recordBillingProgress } from '../db/billing/billingSources.js';
import type { OrgDb } from '../db/orgDb.js';
import { BILLING_PAGE_BYTES } from '../usecases/billing/billingUpload.js';

/** A progress note, and a sign of life, at most so often. */
const PROGRESS_BYTES = 16_777_216;

/** The bytes of a stored file, each chunk checked against its sha256; notes on the import how far they were read. */
export class ImportBytes {
  readonly #orgDb: OrgDb;
  readonly #source: BillingSource;
  readonly #signal: AbortSignal;
  #noted = 0;

  constructor(orgDb: OrgDb, source: BillingSource, signal: AbortSignal) {
    this.#signal = signal;
    this.#orgDb = orgDb;
    this.#source = source;
  }

  /** The chunks in order. */
  async *chunks(): AsyncGenerator<Buffer> {
    let done = 0;
    this.#noted = 0;
    for (let pageNo = 0; done < this.#source.sizeBytes; pageNo += 1) {
      const body = await this.#page(pageNo);
      yield body;
      done += body.length;
      await this.#note(done);
    }
  }

  /** The same bytes in any order. */
  get random(): NonNullable<BillingFileOptions['random']> {
    return {
      sizeBytes: this.#source.sizeBytes,
      read: async (from, to) => {
        const parts: Buffer[] = [];
        for (
          let pageNo = Math.floor(from / BILLING_PAGE_BYTES);
          pageNo * BILLING_PAGE_BYTES < to;
          pageNo += 1
        ) {
          const start = pageNo * BILLING_PAGE_BYTES;
          const body = await this.#page(pageNo);
          parts.push(body.subarray(Math.max(0, from - start), to - start));
        }
        // A file that is read from its end goes back once; from there on it is read forward.
        if (to < this.#source.sizeBytes) await this.#note(to);
        return Buffer.concat(parts);
      },
    };
  }

  async #page(pageNo: number): Promise<Buffer> {
    if (this.#signal.aborted) throw new CancelledFailure('the import was cancelled');
    const page = await findBillingPage(this.#orgDb, this.#source.id, pageNo);
    if (!page || createHash('sha256').update(page.body).digest('hex') !== page.sha256)
      throw new Error(`chunk ${pageNo} of import ${this.#source.id} is missing or damaged`);
    return page.body;
  }

  async #note(done: number): Promise<void> {
    if (done - this.#noted < PROGRESS_BYTES) return;
    this.#noted = done;
    await recordBillingProgress(this.#orgDb, this.#source.id, done);
  }
}
