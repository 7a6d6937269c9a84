import { createHash } from 'node:crypto';
import type {
  BillingFileOptions,
  BillingFileReader,
  BillingFileSummary,
  TaggedRow,
} from '../../adapters/billing/file.js';
import { findFirstAccount, lockFirstAccount } from '../../db/billing/billingConnections.js';
import {
  type BillingDay,
  deleteBillingRows,
  insertBillingDays,
  insertBillingRows,
} from '../../db/billing/billingRows.js';
import {
  BILLING_IMPORTS,
  type BillingSource,
  type BillingSourceResult,
  deleteBillingPages,
  findBillingPage,
  finishBillingSource,
  listKnownAccounts,
  recordBillingProgress,
  setBillingSourceAccount,
} from '../../db/billing/billingSources.js';
import type { OrgDb } from '../../db/orgDb.js';
import { isValueRefused } from '../../db/pgErrors.js';
import { findRun, markRunStarted } from '../../db/runs/runTable.js';
import {
  assertPlausibleSum,
  assertPlausibleTokens,
  type BilledRow,
  CHARGE_CATEGORIES,
  DEFAULT_ACCOUNT,
  resolveAccount,
} from '../../domain/billing/billedRow.js';
import { parseFxRate } from '../../domain/billing/pageRow.js';
import { factsOfFormat, rankOfDay } from '../../domain/billing/sources.js';
import { DomainError } from '../../domain/errors.js';
import { decimalFromPico } from '../../domain/money.js';
import { RUN_TERMINAL_STATUSES } from '../../domain/runs/runKinds.js';
import { rematchInvoicesOf } from '../invoices/rematchInvoices.js';
import { endRun } from '../runs/endRun.js';
import type { UseCaseDeps } from '../useCaseDeps.js';
import { BILLING_PAGE_BYTES } from './billingUpload.js';

/** Bytes between two progress updates, which are also heartbeats. */
const PROGRESS_BYTES = 16_777_216;

/** The bytes of a stored file, each chunk checked against its sha256; records the reading progress on the import. */
class ImportBytes {
  readonly #orgDb: OrgDb;
  readonly #source: BillingSource;
  readonly #signal: AbortSignal;
  #noted = 0;

  constructor(orgDb: OrgDb, source: BillingSource, signal: AbortSignal) {
    this.#signal = signal;
    this.#orgDb = orgDb;
    this.#source = source;
  }

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

  /** Random access to the same bytes. */
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
        // A file that is read from its end jumps back once, and is read forward from there.
        if (to < this.#source.sizeBytes) await this.#note(to);
        return Buffer.concat(parts);
      },
    };
  }

  async #page(pageNo: number): Promise<Buffer> {
    this.#signal.throwIfAborted();
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

/** Rows of one INSERT. */
const BATCH_ROWS = 1_000;

interface ImportDeps extends UseCaseDeps {
  /** Reads bills: adapters/billing/file.ts. */
  readBillingFile: BillingFileReader;
}

/** Reads the file of an import and ends the import. Throws the signal's reason when it is aborted. */
export async function readImport(
  deps: ImportDeps,
  orgDb: OrgDb,
  importId: string,
  signal: AbortSignal,
): Promise<void> {
  const source = await findRun(orgDb, BILLING_IMPORTS, importId);
  if (!source) throw new DomainError('not_found', `there is no import ${importId}`);
  if (RUN_TERMINAL_STATUSES.has(source.status)) return;
  await markRunStarted(orgDb, 'billing_import', importId, 'reading');
  try {
    await readRows(deps, orgDb, source, signal);
  } catch (error) {
    const outcome = outcomeOf(error);
    if (!outcome) throw error;
    // A fault of the file is the import's outcome: it is recorded, and nothing else of the file is stored.
    await discardImport(orgDb, importId, outcome);
  }
}

/** The outcome that a retry would not change; undefined: the failure is temporary. */
function outcomeOf(error: unknown): { code: string; message: string } | undefined {
  if (isValueRefused(error))
    return {
      code: 'invalid_billing_file',
      message: `the bill holds a value that cannot be stored: ${(error as Error).message.slice(0, 200)}`,
    };
  return error instanceof DomainError &&
    (error.code === 'invalid_billing_file' || error.code === 'account_required')
    ? { code: error.code, message: error.message }
    : undefined;
}

/** Ends an open import as failed and stores nothing of its file. */
export async function discardImport(
  orgDb: OrgDb,
  importId: string,
  error: { code: string; message: string },
): Promise<void> {
  await orgDb.transaction(async (inside) => {
    if (!(await endRun(inside, 'billing_import', importId, { status: 'failed', error }))) return;
    await deleteBillingRows(inside, importId);
    await deleteBillingPages(inside, importId);
  });
}

/**
 * Reads the file once. It reads the file again in two cases: where the file restates buckets, which is known at its
 * end, without the replaced copies; and where a first connection was created meanwhile, which owns the rows without an
 * account. Rows count only once their days are written, so a fault in the last line leaves nothing.
 */
async function readRows(
  deps: ImportDeps,
  orgDb: OrgDb,
  source: BillingSource,
  signal: AbortSignal,
): Promise<void> {
  let superseded: ReadonlySet<number> = new Set();
  const read = async () =>
    storeRows(orgDb, source, openReader(deps, orgDb, source, { skip: superseded, signal }));
  let last = await read();
  superseded = last.summary.superseded;
  if (superseded.size > 0) last = await read();
  while (!(await finish(orgDb, source, last, superseded.size))) last = await read();
}

/**
 * The account of rows that name none. It is decided once and stored with the import, so that a retry decides the same
 * although more accounts may be known by then. Error: account_required.
 */
async function settleAccount(orgDb: OrgDb, source: BillingSource): Promise<string> {
  const known = (await findRun(orgDb, BILLING_IMPORTS, source.id))?.accountId ?? null;
  if (known !== null) return known;
  const account = resolveAccount(null, null, await listKnownAccounts(orgDb, source.provider));
  await setBillingSourceAccount(orgDb, source.id, account);
  return account;
}

interface StoredRows {
  summary: BillingFileSummary;
  accounts: Accounts;
  days: ImportDays;
  rowCount: number;
}

/**
 * Stores the rows in short transactions, each while the next rows are read. An earlier attempt's rows are removed
 * first, so that one version of the code has read all rows that count.
 */
async function storeRows(
  orgDb: OrgDb,
  source: BillingSource,
  reader: AsyncGenerator<TaggedRow[], BillingFileSummary>,
): Promise<StoredRows> {
  await deleteBillingRows(orgDb, source.id);
  const firstAccount = await findFirstAccount(orgDb, source.provider);
  const accounts = new Accounts(source.declaredAccount, firstAccount, () => settleAccount(orgDb, source));
  const days = new ImportDays();
  const writer = new RowWriter(orgDb, source);
  try {
    let next = await reader.next();
    for (; !next.done; next = await reader.next()) {
      for (const { row } of next.value) {
        const owned = { ...row, account: await accounts.of(row.account) };
        days.add(owned);
        await writer.add(owned);
      }
    }
    return { summary: next.value, accounts, days, rowCount: await writer.end() };
  } finally {
    await writer.settled();
  }
}

function openReader(
  deps: ImportDeps,
  orgDb: OrgDb,
  source: BillingSource,
  { skip, signal }: { skip: ReadonlySet<number>; signal: AbortSignal },
): AsyncGenerator<TaggedRow[], BillingFileSummary> {
  const bytes = new ImportBytes(orgDb, source, signal);
  return deps.readBillingFile(bytes.chunks(), {
    provider: source.provider,
    format: source.declaredFormat ?? undefined,
    fxRate: source.declaredFxRate === null ? undefined : parseFxRate(source.declaredFxRate),
    skip,
    random: bytes.random,
  });
}

/** Stores rows batch by batch: one statement runs while the next batch fills. */
class RowWriter {
  readonly #orgDb: OrgDb;
  readonly #source: BillingSource;
  #batch: BilledRow[] = [];
  #rows = 0;
  #pending: Promise<void> = Promise.resolve();

  constructor(orgDb: OrgDb, source: BillingSource) {
    this.#orgDb = orgDb;
    this.#source = source;
  }

  async add(row: BilledRow): Promise<void> {
    this.#batch.push(row);
    if (this.#batch.length >= BATCH_ROWS) await this.#flush();
  }

  /** The number of rows, once the last is stored. */
  async end(): Promise<number> {
    await this.#flush();
    await this.#pending;
    return this.#rows;
  }

  /** Waits for pending work. Its failure is ignored: it was reported, or another failure came first. */
  async settled(): Promise<void> {
    await this.#pending.catch(() => undefined);
  }

  async #flush(): Promise<void> {
    await this.#pending;
    const batch = this.#batch;
    this.#batch = [];
    const place = { id: this.#source.id, provider: this.#source.provider, firstRowNo: this.#rows + 1 };
    this.#rows += batch.length;
    this.#pending = insertBillingRows(this.#orgDb, place, batch);
    // The next await reports the failure.
    this.#pending.catch(() => undefined);
  }
}

/** Ends the import. Returns false, without changes, when a first connection was created since its rows were stored. */
async function finish(
  orgDb: OrgDb,
  source: BillingSource,
  { summary, accounts, days, rowCount }: StoredRows,
  restatedBuckets: number,
): Promise<boolean> {
  days.assertPlausible();
  const covered = await days.covering(summary, accounts);
  const dates = covered.map((day) => day.day).sort();
  const result: BillingSourceResult = {
    format: summary.format,
    sourceRank: factsOfFormat(summary.format).rank,
    accountId: accounts.only,
    rowCount,
    amountPico: covered.reduce((sum, day) => sum + day.amountPico, 0n),
    periodStart: dates[0] ?? null,
    periodEnd: dates.at(-1) ?? null,
    unparsed: summary.unparsed.map(({ label, rows, amountPico }) => ({
      label,
      rows,
      amount_usd: decimalFromPico(amountPico),
    })),
    leftOut: summary.leftOut.map(({ chargeCategory, currency, rows, amount }) => ({
      charge_category: chargeCategory,
      currency,
      rows,
      amount: decimalFromPico(amount),
    })),
    unconverted: summary.unconverted.map(({ currency, rows, amount }) => ({
      currency,
      rows,
      amount: decimalFromPico(amount),
    })),
    restatedBuckets,
  };
  return orgDb.transaction(async (inside) => {
    await lockFirstAccount(inside, orgDb.orgId, source.provider);
    const first = await findFirstAccount(inside, source.provider);
    if (accounts.hasDefault && first !== undefined && first !== DEFAULT_ACCOUNT) return false;
    // Another attempt may have ended the import meanwhile, and has stored its days.
    if (!(await finishBillingSource(inside, source.id, result))) return true;
    await insertBillingDays(
      inside,
      { id: source.id, provider: source.provider, fetchedAtMicros: source.fetchedAtMicros },
      covered,
    );
    const { periodStart: fromDay, periodEnd: toDay } = result;
    if (fromDay !== null && toDay !== null)
      await rematchInvoicesOf(inside, { provider: source.provider, fromDay, toDay });
    return true;
  });
}

/**
 * The account of each row: the declared one, else the row's own, else the one that was decided for rows without an
 * account.
 */
export class Accounts {
  readonly #declared: string | null;
  readonly #settle: () => Promise<string>;
  readonly #first: string | undefined;
  #settled: string | null = null;
  readonly #names = new Set<string>();

  /**
   * `settle` decides once which account owns rows without one; `first` is the account of the provider's first
   * connection, which owns the rows of the account `default`.
   */
  constructor(declared: string | null, first: string | undefined, settle: () => Promise<string>) {
    this.#declared = declared;
    this.#first = first;
    this.#settle = settle;
  }

  /** Throws account_required when the account is unknown. */
  async of(fromContent: string | null): Promise<string> {
    const account = this.#declared ?? fromContent ?? this.#settled ?? (await this.#settle());
    if (this.#declared === null && fromContent === null) this.#settled = account;
    const name = account === DEFAULT_ACCOUNT ? (this.#first ?? account) : account;
    this.#names.add(name);
    return name;
  }

  /** Whether any rows belong to the account `default`. */
  get hasDefault(): boolean {
    return this.#names.has(DEFAULT_ACCOUNT);
  }

  /** The file's only account; null: it has several. */
  get only(): string | null {
    const [name, more] = this.#names;
    return more === undefined ? (name ?? null) : null;
  }
}

type DayKey = Pick<BillingDay, 'accountId' | 'day' | 'feed' | 'report' | 'chargeCategory'>;

/** Sums by account, day, feed, report and category. */
export class ImportDays {
  readonly #days = new Map<string, BillingDay>();
  /** Whether the bill is final, by account and day; a category without a charge has the finality of the others. */
  readonly #finality = new Map<string, boolean | null>();
  /** Tokens by day, account, feed and report, 1e-12. */
  readonly #tokens = new Map<string, bigint>();

  add(row: BilledRow & { account: string }): void {
    const day = this.#of({
      accountId: row.account,
      day: row.day,
      feed: row.feed,
      report: row.report,
      chargeCategory: row.chargeCategory,
    });
    day.rowCount += 1;
    day.amountPico += row.amountPico ?? 0n;
    if (row.feed === 'cost' && row.amountPico === null) day.unconvertedRows += 1;
    const place = placeOf(day);
    if (row.quantityUnit === 'tokens') {
      const key = `${place}|${row.feed}|${row.report}`;
      this.#tokens.set(key, (this.#tokens.get(key) ?? 0n) + (row.quantity ?? 0n));
    }
    const known = this.#finality.get(place);
    this.#finality.set(place, known === undefined ? row.isFinal : known && row.isFinal);
  }

  /** Throws invalid_billing_file where the dollars of a day or of the file, or the tokens of a day, exceed every real bill. */
  assertPlausible(): void {
    let whole = 0n;
    for (const { day, amountPico } of this.#days.values()) {
      assertPlausibleSum(amountPico, day);
      whole += amountPico;
    }
    assertPlausibleSum(whole, 'the file');
    for (const [key, tokens] of this.#tokens) assertPlausibleTokens(tokens, key.slice(0, 10));
  }

  /**
   * Everything that the file covers, including days without charges and, for complete reports, categories without
   * charges.
   */
  async covering(
    summary: BillingFileSummary,
    accounts: Accounts,
  ): Promise<(BillingDay & { rank: number })[]> {
    const { coversAllCategories } = factsOfFormat(summary.format);
    for (const { day, feed, report, account } of summary.covered) {
      const categories =
        feed === 'usage' ? (['usage'] as const) : coversAllCategories ? CHARGE_CATEGORIES : [];
      for (const chargeCategory of categories)
        this.#of({ accountId: await accounts.of(account), day, feed, report, chargeCategory });
    }
    // A day without charges has the finality of the bill's other days.
    const all = [...this.#finality.values()];
    const ofBill =
      all.length > 0 && all.every((isFinal) => isFinal) ? true : all.includes(false) ? false : null;
    return [...this.#days.values()].map((day) => {
      const stated = this.#finality.get(placeOf(day));
      const isFinal = stated === undefined ? ofBill : stated;
      return { ...day, isFinal, rank: rankOfDay(summary.format, isFinal) };
    });
  }

  #of(key: DayKey): BillingDay {
    const name = `${placeOf(key)}|${key.feed}|${key.report}|${key.chargeCategory}`;
    const known = this.#days.get(name);
    if (known) return known;
    const day: BillingDay = { ...key, rowCount: 0, amountPico: 0n, unconvertedRows: 0, isFinal: null };
    this.#days.set(name, day);
    return day;
  }
}

function placeOf({ accountId, day }: DayKey): string {
  return `${day}|${accountId}`;
}
