import { createHash } from 'node:crypto';
import { CancelledFailure, Context } from '@temporalio/activity';
import type { BillingFileSummary } from '../adapters/billing/file.js';
import { OrgDb } from '../db/orgDb.js';
import { giveToFirstConnection } from '../db/queries/adoptAccount.js';
import {
  type BillingDay,
  deleteBillingRows,
  insertBillingDays,
  insertBillingRows,
} from '../db/queries/billingRows.js';
import {
  type BillingSource,
  type BillingSourceResult,
  deleteBillingPages,
  failBillingSource,
  findBillingPage,
  findBillingSource,
  finishBillingSource,
  listKnownAccounts,
  markBillingSourceRunning,
  recordBillingProgress,
  setBillingSourceAccount,
} from '../db/queries/billingSources.js';
import { resolveAccount } from '../domain/billing/account.js';
import { type BilledRow, CHARGE_CATEGORIES } from '../domain/billing/billedRow.js';
import { parseFxRate } from '../domain/billing/pageRow.js';
import { factsOfFormat } from '../domain/billing/sources.js';
import { DomainError } from '../domain/errors.js';
import { decimalFromPico } from '../domain/money.js';
import { RUN_TERMINAL_STATUSES } from '../domain/runs.js';
import type { ActivityDeps } from './deps.js';
import { withFailures } from './failures.js';
import { withHeartbeat } from './heartbeat.js';

interface ImportRef {
  orgId: string;
  importId: string;
}

/** Rows of one INSERT. */
const BATCH_ROWS = 1_000;
/** A progress note, and a sign of life, at most so often. */
const PROGRESS_BYTES = 16_777_216;

/** The effects of reading a bill. */
export function createBillingImportActivities(deps: ActivityDeps) {
  return {
    /** Reads a stored file into rows: all of it counts, or nothing. */
    readBillingImport: ({ orgId, importId }: ImportRef): Promise<void> =>
      // A repeat stores the same rows anew; the days by which they count commit with the import's end, once.
      withFailures(() => withHeartbeat(() => readImport(deps, new OrgDb(deps.database, orgId), importId))),

    endBillingImportFailed: ({ orgId, importId, message }: ImportRef & { message: string }): Promise<void> =>
      // Only an open import is ended.
      withFailures(() =>
        discard(new OrgDb(deps.database, orgId), importId, { code: 'internal_error', message }),
      ),
  };
}

async function readImport(deps: ActivityDeps, orgDb: OrgDb, importId: string): Promise<void> {
  const source = await findBillingSource(orgDb, importId);
  if (!source) throw new DomainError('not_found', `there is no import ${importId}`);
  const giveAway = async () => {
    await giveToFirstConnection(deps.database, orgDb.orgId, source.provider);
  };
  if (RUN_TERMINAL_STATUSES.has(source.status)) return giveAway();
  await markBillingSourceRunning(orgDb, importId);
  try {
    // The first reading finds every fault before anything is stored, and the buckets that are told again.
    const survey = await surveyFile(deps, orgDb, source);
    const accounts = new Accounts(source, await settleAccount(orgDb, source, survey));
    await storeRows(deps, orgDb, source, survey.superseded, accounts);
    await giveAway();
  } catch (error) {
    if (
      !(error instanceof DomainError) ||
      (error.code !== 'invalid_billing_file' && error.code !== 'account_required')
    )
      throw error;
    // What is wrong with a file is the import's outcome: told on it, and nothing else of the file is kept.
    await discard(orgDb, importId, { code: error.code, message: error.message });
  }
}

async function discard(
  orgDb: OrgDb,
  importId: string,
  error: { code: string; message: string },
): Promise<void> {
  await orgDb.transaction(async (inside) => {
    if (!(await failBillingSource(inside, importId, error))) return;
    await deleteBillingRows(inside, importId);
    await deleteBillingPages(inside, importId);
  });
}

async function surveyFile(
  deps: ActivityDeps,
  orgDb: OrgDb,
  source: BillingSource,
): Promise<BillingFileSummary> {
  const reader = openReader(deps, orgDb, source, new Set());
  for (;;) {
    const next = await reader.next();
    if (next.done) return next.value;
  }
}

/**
 * The account of rows that name none: decided once and kept with the import, so that a later attempt, which may know
 * more accounts, decides the same. Null where every row names its own. Error account_required.
 */
async function settleAccount(
  orgDb: OrgDb,
  source: BillingSource,
  survey: BillingFileSummary,
): Promise<string | null> {
  if (source.declaredAccount !== null) return source.declaredAccount;
  if (survey.covered.every((day) => day.account !== null)) return null;
  if (source.accountId !== null) return source.accountId;
  const account = resolveAccount(null, null, await listKnownAccounts(orgDb, source.provider));
  await setBillingSourceAccount(orgDb, source.id, account);
  return account;
}

function openReader(deps: ActivityDeps, orgDb: OrgDb, source: BillingSource, skip: ReadonlySet<number>) {
  return deps.readBillingFile(readPages(orgDb, source), {
    provider: source.provider,
    format: source.declaredFormat ?? undefined,
    fxRate: source.declaredFxRate === null ? undefined : parseFxRate(source.declaredFxRate),
    skip,
  });
}

/** The stored chunks in order, each checked against its sha256; notes progress on the way. */
async function* readPages(orgDb: OrgDb, source: BillingSource): AsyncGenerator<Buffer> {
  const context = Context.current();
  let done = 0;
  let noted = 0;
  for (let pageNo = 0; done < source.sizeBytes; pageNo += 1) {
    if (context.cancellationSignal.aborted) throw new CancelledFailure('the import was cancelled');
    const page = await findBillingPage(orgDb, source.id, pageNo);
    if (!page || createHash('sha256').update(page.body).digest('hex') !== page.sha256) {
      throw new Error(`chunk ${pageNo} of import ${source.id} is missing or damaged`);
    }
    yield page.body;
    done += page.body.length;
    if (done - noted < PROGRESS_BYTES) continue;
    noted = done;
    await recordBillingProgress(orgDb, source.id, done);
  }
}

/**
 * Stores the rows in short transactions; they count nowhere until the days are written, which ends the import in one.
 * A former attempt's rows go first, so that what counts was read by one version of the code.
 */
async function storeRows(
  deps: ActivityDeps,
  orgDb: OrgDb,
  source: BillingSource,
  skip: ReadonlySet<number>,
  accounts: Accounts,
): Promise<void> {
  await deleteBillingRows(orgDb, source.id);
  const days = new Days();
  const reader = openReader(deps, orgDb, source, skip);
  let stored = 0;
  let batch: BilledRow[] = [];
  const flush = async () => {
    await insertBillingRows(
      orgDb,
      { id: source.id, provider: source.provider, firstRowNo: stored + 1 },
      batch,
    );
    stored += batch.length;
    batch = [];
  };
  let next = await reader.next();
  for (; !next.done; next = await reader.next()) {
    for (const { row } of next.value) {
      const owned = { ...row, account: accounts.of(row.account) };
      days.add(owned);
      batch.push(owned);
      if (batch.length >= BATCH_ROWS) await flush();
    }
  }
  await flush();
  await finish(orgDb, source, next.value, accounts, days, { rowCount: stored, restatedBuckets: skip.size });
}

async function finish(
  orgDb: OrgDb,
  source: BillingSource,
  summary: BillingFileSummary,
  accounts: Accounts,
  days: Days,
  counts: { rowCount: number; restatedBuckets: number },
): Promise<void> {
  const facts = factsOfFormat(summary.format);
  const covered = days.covering(summary, accounts, facts.coversAllCategories);
  const dates = covered.map((day) => day.day).sort();
  const result: BillingSourceResult = {
    format: summary.format,
    sourceRank: facts.rank,
    accountId: accounts.only,
    rowCount: counts.rowCount,
    amountPico: covered.reduce((sum, day) => sum + day.amountPico, 0n),
    periodStart: dates[0] ?? null,
    periodEnd: dates.at(-1) ?? null,
    unparsed: summary.unparsed.map(({ label, rows, amountPico }) => ({
      label,
      rows,
      amount_usd: decimalFromPico(amountPico),
    })),
    restatedBuckets: counts.restatedBuckets,
  };
  await orgDb.transaction(async (inside) => {
    // Another attempt may have ended it meanwhile: then its days are there.
    if (!(await finishBillingSource(inside, source.id, result))) return;
    await insertBillingDays(
      inside,
      { id: source.id, provider: source.provider, rank: facts.rank, fetchedAtMicros: source.fetchedAtMicros },
      covered,
    );
  });
}

/** Whose rows these are: as declared, else as each row says, else the account that was settled for those that do not. */
class Accounts {
  readonly #declared: string | null;
  readonly #settled: string | null;
  readonly #names = new Set<string>();

  constructor(source: BillingSource, settled: string | null) {
    this.#declared = source.declaredAccount;
    this.#settled = settled;
  }

  /** Error account_required when nothing names one. */
  of(fromContent: string | null): string {
    const name = this.#declared ?? fromContent ?? this.#settled;
    if (name === null)
      throw new DomainError('account_required', 'some rows name no account; say whose bill it is');
    this.#names.add(name);
    return name;
  }

  /** The one account of the file; null where it has several. */
  get only(): string | null {
    const [name, more] = this.#names;
    return more === undefined ? (name ?? null) : null;
  }
}

/** Sums by account, day, feed, report and category. */
class Days {
  readonly #days = new Map<string, BillingDay>();

  add(row: BilledRow): void {
    const day = this.#of({
      accountId: row.account ?? '',
      day: row.day,
      feed: row.feed,
      report: row.report,
      chargeCategory: row.chargeCategory,
    });
    day.rowCount += 1;
    day.amountPico += row.amountPico ?? 0n;
  }

  /** Everything that the file speaks about: also days, and for whole reports categories, in which it bills nothing. */
  covering(summary: BillingFileSummary, accounts: Accounts, allCategories: boolean): BillingDay[] {
    for (const { day, feed, report, account } of summary.covered) {
      const categories = feed === 'usage' ? (['usage'] as const) : allCategories ? CHARGE_CATEGORIES : [];
      for (const chargeCategory of categories)
        this.#of({ accountId: accounts.of(account), day, feed, report, chargeCategory });
    }
    return [...this.#days.values()];
  }

  #of(key: Pick<BillingDay, 'accountId' | 'day' | 'feed' | 'report' | 'chargeCategory'>): BillingDay {
    const name = [key.day, key.accountId, key.feed, key.report, key.chargeCategory].join('|');
    const known = this.#days.get(name);
    if (known) return known;
    const day: BillingDay = { ...key, rowCount: 0, amountPico: 0n };
    this.#days.set(name, day);
    return day;
  }
}
