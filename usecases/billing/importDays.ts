import type { BillingFileSummary } from '../../adapters/billing/file.js';
import type { BillingDay } from '../../db/billing/billingRows.js';
import { DEFAULT_ACCOUNT } from '../../domain/billing/account.js';
import { type BilledRow, CHARGE_CATEGORIES } from '../../domain/billing/billedRow.js';
import { assertPlausibleSum, assertPlausibleTokens } from '../../domain/billing/rowBounds.js';
import { factsOfFormat, rankOfDay } from '../../domain/billing/sources.js';

/** Whose rows these are: as declared, else as each row says, else the account that was settled for those that do not. */
export class Accounts {
  readonly #declared: string | null;
  readonly #settle: () => Promise<string>;
  readonly #first: string | undefined;
  #settled: string | null = null;
  readonly #names = new Set<string>();

  /**
   * `settle` decides, once, whose the rows are that name no account; `first` is the account of the provider's first
   * connection, which owns what is of the account `default`.
   */
  constructor(declared: string | null, first: string | undefined, settle: () => Promise<string>) {
    this.#declared = declared;
    this.#first = first;
    this.#settle = settle;
  }

  /** Error account_required when nothing names one. */
  async of(fromContent: string | null): Promise<string> {
    const told = this.#declared ?? fromContent ?? this.#settled ?? (await this.#settle());
    if (this.#declared === null && fromContent === null) this.#settled = told;
    const name = told === DEFAULT_ACCOUNT ? (this.#first ?? told) : told;
    this.#names.add(name);
    return name;
  }

  /** Whether rows are of the account `default`. */
  get hasDefault(): boolean {
    return this.#names.has(DEFAULT_ACCOUNT);
  }

  /** The one account of the file; null where it has several. */
  get only(): string | null {
    const [name, more] = this.#names;
    return more === undefined ? (name ?? null) : null;
  }
}

type DayKey = Pick<BillingDay, 'accountId' | 'day' | 'feed' | 'report' | 'chargeCategory'>;

/** Sums by account, day, feed, report and category. */
export class ImportDays {
  readonly #days = new Map<string, BillingDay>();
  /** What the bill says of its account's days; a category without a charge is as final as the others. */
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
      const told = `${place}|${row.feed}|${row.report}`;
      this.#tokens.set(told, (this.#tokens.get(told) ?? 0n) + (row.quantity ?? 0n));
    }
    const known = this.#finality.get(place);
    this.#finality.set(place, known === undefined ? row.isFinal : known && row.isFinal);
  }

  /** Error invalid_billing_file where a day, or the file, is of more than any bill is. */
  assertPlausible(): void {
    let whole = 0n;
    for (const { day, amountPico } of this.#days.values()) {
      assertPlausibleSum(amountPico, day);
      whole += amountPico;
    }
    assertPlausibleSum(whole, 'the file');
    for (const [told, tokens] of this.#tokens) assertPlausibleTokens(tokens, told.slice(0, 10));
  }

  /** Everything that the file speaks about: also days, and for whole reports categories, in which it bills nothing. */
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
    // A day without a charge of its own is as final as the bill's others are.
    const all = [...this.#finality.values()];
    const ofBill =
      all.length > 0 && all.every((isFinal) => isFinal) ? true : all.includes(false) ? false : null;
    return [...this.#days.values()].map((day) => {
      const told = this.#finality.get(placeOf(day));
      const isFinal = told === undefined ? ofBill : told;
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
