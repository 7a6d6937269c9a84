import { createHash } from 'node:crypto';
import { CancelledFailure, Context } from '@temporalio/activity';
import type { BillingFileSummary } from '../adapters/billing/file.js';
import { OrgDb } from '../db/orgDb.js';
import { type BillingDay, insertBillingDays, insertBillingRows } from '../db/queries/billingRows.js';
import {
  type BillingSource,
  deleteBillingPages,
  failBillingSource,
  findBillingPage,
  findBillingSource,
  finishBillingSource,
  holdBillingSource,
  listKnownAccounts,
  markBillingSourceRunning,
  recordBillingProgress,
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
    /** Reads a stored file into rows: all of it in one transaction, or nothing. */
    readBillingImport: ({ orgId, importId }: ImportRef): Promise<void> =>
      // Rows, days and the import's end commit together; a repeat finds the end and does nothing.
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
  if (RUN_TERMINAL_STATUSES.has(source.status)) return;
  await markBillingSourceRunning(orgDb, importId);
  try {
    await orgDb.transaction(async (inside) => {
      // A former attempt that lost touch with the engine may still be at it: let it finish or fail first.
      if (!(await holdBillingSource(inside, importId))) {
        throw new DomainError('service_unavailable', 'another attempt is reading this file');
      }
      const current = await findBillingSource(inside, importId);
      if (current && !RUN_TERMINAL_STATUSES.has(current.status)) await readInto(deps, orgDb, inside, current);
    });
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
    if (await failBillingSource(inside, importId, error)) await deleteBillingPages(inside, importId);
  });
}

/** Reads the file; once more where it restates buckets, then without the tellings that were replaced. */
async function readInto(
  deps: ActivityDeps,
  outside: OrgDb,
  inside: OrgDb,
  source: BillingSource,
): Promise<void> {
  const first = await surveyRestatements(deps, outside, inside, source);
  await storeRows(deps, outside, inside, source, first);
}

/** Which tellings a later page replaces. Formats without buckets restate nothing and are read once. */
async function surveyRestatements(
  deps: ActivityDeps,
  outside: OrgDb,
  inside: OrgDb,
  source: BillingSource,
): Promise<ReadonlySet<number>> {
  if (source.declaredFormat === 'plain_csv') return new Set();
  const reader = openReader(deps, outside, inside, source, new Set());
  for (;;) {
    const next = await reader.next();
    if (next.done) return next.value.superseded;
  }
}

function openReader(
  deps: ActivityDeps,
  outside: OrgDb,
  inside: OrgDb,
  source: BillingSource,
  skip: ReadonlySet<number>,
) {
  return deps.readBillingFile(readPages(outside, inside, source), {
    provider: source.provider,
    format: source.declaredFormat ?? undefined,
    fxRate: source.declaredFxRate === null ? undefined : parseFxRate(source.declaredFxRate),
    skip,
  });
}

/** The stored chunks in order, each checked against its sha256; notes progress outside of the transaction. */
async function* readPages(outside: OrgDb, inside: OrgDb, source: BillingSource): AsyncGenerator<Buffer> {
  const context = Context.current();
  let done = 0;
  let noted = 0;
  for (let pageNo = 0; done < source.sizeBytes; pageNo += 1) {
    if (context.cancellationSignal.aborted) throw new CancelledFailure('the import was cancelled');
    const page = await findBillingPage(inside, source.id, pageNo);
    if (!page || createHash('sha256').update(page.body).digest('hex') !== page.sha256) {
      throw new Error(`chunk ${pageNo} of import ${source.id} is missing or damaged`);
    }
    yield page.body;
    done += page.body.length;
    if (done - noted < PROGRESS_BYTES) continue;
    noted = done;
    await recordBillingProgress(outside, source.id, done);
  }
}

async function storeRows(
  deps: ActivityDeps,
  outside: OrgDb,
  inside: OrgDb,
  source: BillingSource,
  skip: ReadonlySet<number>,
): Promise<void> {
  const accounts = new Accounts(source, await listKnownAccounts(inside, source.provider));
  const days = new Days();
  const reader = openReader(deps, outside, inside, source, skip);
  let stored = 0;
  let batch: BilledRow[] = [];
  const flush = async () => {
    await insertBillingRows(
      inside,
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
  await finish(inside, source, next.value, accounts, days, { rowCount: stored, restatedBuckets: skip.size });
}

async function finish(
  inside: OrgDb,
  source: BillingSource,
  summary: BillingFileSummary,
  accounts: Accounts,
  days: Days,
  counts: { rowCount: number; restatedBuckets: number },
): Promise<void> {
  const facts = factsOfFormat(summary.format);
  const covered = days.covering(summary, accounts, facts.coversAllCategories);
  await insertBillingDays(
    inside,
    { id: source.id, provider: source.provider, rank: facts.rank, fetchedAtMicros: source.fetchedAtMicros },
    covered,
  );
  const dates = covered.map((day) => day.day).sort();
  await finishBillingSource(inside, source.id, {
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
  });
}

/** Whose rows these are: the rule for bills that name no account is applied once for each account named. */
class Accounts {
  readonly #source: BillingSource;
  readonly #known: readonly string[];
  readonly #resolved = new Map<string | null, string>();

  constructor(source: BillingSource, known: readonly string[]) {
    this.#source = source;
    this.#known = known;
  }

  /** Error account_required. */
  of(fromContent: string | null): string {
    const resolved =
      this.#resolved.get(fromContent) ??
      resolveAccount(this.#source.declaredAccount, fromContent, this.#known);
    this.#resolved.set(fromContent, resolved);
    return resolved;
  }

  /** The one account of the file; null where it has several. */
  get only(): string | null {
    const names = new Set(this.#resolved.values());
    return names.size === 1 ? ([...names][0] ?? null) : null;
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
