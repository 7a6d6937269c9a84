import type { BilledClass, ChargeCategory } from '../../billing/billedRow.js';
import { compare } from '../../compare.js';
import { absPico, type Pico } from '../../money.js';
import { OTHER_LABELS } from '../audit/audit.js';
import type { UnjudgedReason } from '../audit/judgeMeter.js';
import type { DayCharge } from '../matching/charges.js';
import {
  addBucket,
  addCharge,
  addFigures,
  type ComparedBucket,
  type CountedCopy,
  coverageOf,
  explainedByFindingsOf,
  invoiceTotalOf,
  type MonthCoverage,
  noFigures,
  type StatementFigures,
} from './statementFigures.js';

/** The billed amount of an account on a day in one category. */
export interface StatementTotal {
  provider: string;
  accountId: string;
  day: string;
  chargeCategory: ChargeCategory;
  amountPico: Pico;
}

/** The amounts claimed for an account's days in the month. */
export interface AskedBack {
  provider: string;
  /** '': calls of unknown account were compared with the sum over all accounts. */
  accountId: string;
  disputedPico: Pico;
  creditedPico: Pico;
}

/** The results of runs for an account's days in the month. */
export interface FoundOfAccount {
  provider: string;
  /** '': calls of unknown account were compared with the sum over all accounts. */
  accountId: string;
  /** As the financial summary shows it, in whole cents. */
  unexplainedPico: Pico;
  /** The sum of explained findings, signed. */
  inFindingsPico: Pico;
}

export interface StatementInput {
  firstDay: string;
  nowMicros: bigint;
  /** The totals by the present bills. */
  totals: readonly StatementTotal[];
  /** The totals when the month was closed; null: it is open. */
  frozen: readonly StatementTotal[] | null;
  /** Usage charges of the month by provider and day. */
  charges: readonly { provider: string; charges: readonly DayCharge[] }[];
  compared: readonly ComparedBucket[];
  copies: readonly CountedCopy[];
  /** Present results for the month's days. */
  found: readonly FoundOfAccount[];
  asked: readonly AskedBack[];
  /** Accounts with a bill in this month or the months next to it. */
  accounts: readonly { provider: string; accountId: string }[];
}

/** Billed usage without a list price, by label and reason. */
export interface NotPriced {
  provider: string;
  accountId: string;
  label: string;
  tokenClass: BilledClass;
  reason: UnjudgedReason | 'no_list_price';
  billedPico: Pico;
}

export interface AccountStatement extends StatementFigures {
  provider: string;
  accountId: string;
}

export interface ProviderStatement extends StatementFigures {
  provider: string;
}

export interface Statement extends MonthCoverage {
  /** `YYYY-MM` */
  period: string;
  accounts: AccountStatement[];
  providers: ProviderStatement[];
  total: StatementFigures;
  /** Largest amount first; labels beyond NOT_PRICED_LABELS_MAX are summed under OTHER_LABELS. */
  notPriced: NotPriced[];
}

/** Maximum labels in a statement; a bill can have one for each of its rows. */
export const NOT_PRICED_LABELS_MAX = 1_000;

/** The month's statement; a pure function of its input. */
export function buildStatement(input: StatementInput): Statement {
  const accounts = new Map<string, AccountStatement>();
  const accountOf = (provider: string, accountId: string): AccountStatement => {
    const key = `${provider}\n${accountId}`;
    const known = accounts.get(key) ?? { provider, accountId, ...noFigures() };
    accounts.set(key, known);
    return known;
  };
  for (const total of input.frozen ?? input.totals)
    accountOf(total.provider, total.accountId).billed[total.chargeCategory] += total.amountPico;
  if (input.frozen) addRestatements(input.frozen, input.totals, accountOf);
  const notPriced = priceCharges(input, accountOf);
  const shared = verify(input, accountOf);
  for (const { provider, accountId, unexplainedPico, inFindingsPico } of input.found) {
    const figures = figuresOf(provider, accountId, accountOf, shared);
    figures.unexplainedPico += unexplainedPico;
    figures.inFindingsPico += inFindingsPico;
  }
  for (const { provider, accountId, disputedPico, creditedPico } of input.asked) {
    const figures = figuresOf(provider, accountId, accountOf, shared);
    figures.disputedPico += disputedPico;
    figures.creditedPico += creditedPico;
  }
  const listed = [...accounts.values()].sort(
    (a, b) => compare(a.provider, b.provider) || compare(a.accountId, b.accountId),
  );
  const providers = sumProviders(listed, shared);
  const total = noFigures();
  for (const provider of providers) addFigures(total, provider);
  return {
    period: input.firstDay.slice(0, 7),
    ...coverageOf({ ...input, billedDays: input.totals }),
    accounts: listed,
    providers,
    total,
    notPriced,
  };
}

type AccountOf = (provider: string, accountId: string) => AccountStatement;

/** Prices and verification use the present bills of a closed month; the change since its closing is a separate item. */
function addRestatements(
  frozen: readonly StatementTotal[],
  current: readonly StatementTotal[],
  accountOf: AccountOf,
): void {
  for (const [totals, sign] of [
    [frozen, 1n],
    [current, -1n],
  ] as const)
    for (const { provider, accountId, chargeCategory, amountPico } of totals)
      if (chargeCategory === 'usage') accountOf(provider, accountId).restatedPico += sign * amountPico;
}

function priceCharges(input: StatementInput, accountOf: AccountOf): NotPriced[] {
  const named = new Map<string, NotPriced>();
  for (const { provider, charges } of input.charges) {
    for (const charge of charges) {
      const { accountId, label, tokenClass, verdict, billedPico } = charge;
      if (addCharge(accountOf(provider, accountId), charge)) continue;
      const reason = verdict === 'as_agreed' || verdict === 'differs' ? 'no_list_price' : verdict;
      const key = [provider, accountId, label, tokenClass, reason].join('\n');
      const known = named.get(key);
      if (known) known.billedPico += billedPico;
      else named.set(key, { provider, accountId, label, tokenClass, reason, billedPico });
    }
  }
  return withoutMany([...named.values()].sort(byAmount));
}

function byAmount(a: NotPriced, b: NotPriced): number {
  const [left, right] = [absPico(a.billedPico), absPico(b.billedPico)];
  return left === right ? compare(a.label, b.label) : left > right ? -1 : 1;
}

/** Keeps the largest labels and sums the others by their remaining fields, so that the total stays. */
function withoutMany(sorted: readonly NotPriced[]): NotPriced[] {
  if (sorted.length <= NOT_PRICED_LABELS_MAX) return [...sorted];
  const others = new Map<string, NotPriced>();
  for (const one of sorted.slice(NOT_PRICED_LABELS_MAX)) {
    const key = [one.provider, one.accountId, one.tokenClass, one.reason].join('\n');
    const known = others.get(key);
    if (known) known.billedPico += one.billedPico;
    else others.set(key, { ...one, label: OTHER_LABELS });
  }
  return [...sorted.slice(0, NOT_PRICED_LABELS_MAX), ...[...others.values()].sort(byAmount)];
}

/**
 * Adds the verified amounts of the runs. A provider's day counts as compared if it has buckets. Billed amounts of
 * an account on such a day outside its own buckets were compared as a sum over accounts; these sums are returned
 * by provider.
 */
function verify(input: StatementInput, accountOf: AccountOf): Map<string, StatementFigures> {
  const shared = new Map<string, StatementFigures>();
  const comparedDays = new Set<string>();
  for (const bucket of input.compared) {
    comparedDays.add(`${bucket.provider}\n${bucket.day}`);
    const figures = figuresOf(bucket.provider, bucket.accountId, accountOf, shared);
    addBucket(figures, bucket);
    figures.acrossAccountsPico -= bucket.providerCostPico;
  }
  for (const { provider, accountId, day, chargeCategory, amountPico } of input.totals) {
    if (chargeCategory !== 'usage') continue;
    const account = accountOf(provider, accountId);
    if (comparedDays.has(`${provider}\n${day}`)) account.acrossAccountsPico += amountPico;
    else account.notComparedPico += amountPico;
  }
  return shared;
}

/** The figures of an account; without one, of the provider alone, as for comparisons over all accounts. */
function figuresOf(
  provider: string,
  accountId: string,
  accountOf: AccountOf,
  shared: Map<string, StatementFigures>,
): StatementFigures {
  if (accountId !== '') return accountOf(provider, accountId);
  const figures = shared.get(provider) ?? noFigures();
  shared.set(provider, figures);
  return figures;
}

function sumProviders(
  accounts: readonly AccountStatement[],
  shared: ReadonlyMap<string, StatementFigures>,
): ProviderStatement[] {
  const providers = new Map<string, ProviderStatement>();
  const add = (provider: string, figures: StatementFigures) => {
    const known = providers.get(provider) ?? { provider, ...noFigures() };
    addFigures(known, figures);
    providers.set(provider, known);
  };
  for (const { provider, accountId: _, ...figures } of accounts) add(provider, figures);
  for (const [provider, figures] of shared) add(provider, figures);
  return [...providers.values()].sort((a, b) => compare(a.provider, b.provider));
}

/**
 * The three sums of a statement; the items of each add up to its footing. `usage`: from list price to billed
 * usage; `invoice`: from billed usage to the invoice; `verification`: the verified and unverified parts of billed
 * usage.
 */
export const STATEMENT_SECTIONS = ['usage', 'invoice', 'verification'] as const;
export type StatementSection = (typeof STATEMENT_SECTIONS)[number];

export interface StatementLine {
  section: StatementSection;
  /** In snake_case with its unit, as in the CSV. */
  name: string;
  /** `footing`: the sum of the section's items; `memo`: not part of the sum. */
  kind: 'item' | 'footing' | 'memo';
  amount(figures: StatementFigures): Pico;
}

function line(
  section: StatementSection,
  name: string,
  amount: StatementLine['amount'],
  kind: StatementLine['kind'] = 'item',
): StatementLine {
  return { section, name, kind, amount };
}

/** The lines of a statement in order; discounts are negative, so that every section is one sum. */
export const STATEMENT_LINES: readonly StatementLine[] = [
  line('usage', 'list_usd', (f) => f.listPico),
  line('usage', 'contract_discount_usd', (f) => -f.contractDiscountPico),
  line('usage', 'other_discount_usd', (f) => -f.otherDiscountPico),
  line('usage', 'rate_difference_usd', (f) => f.rateDifferencePico),
  line('usage', 'not_priced_usd', (f) => f.notPricedPico),
  line('usage', 'restated_since_closing_usd', (f) => f.restatedPico),
  line('usage', 'billed_usage_usd', (f) => f.billed.usage, 'footing'),
  line('usage', 'free_allowance_list_usd', (f) => f.freeAllowancePico, 'memo'),
  line('invoice', 'billed_usage_usd', (f) => f.billed.usage),
  line('invoice', 'purchases_usd', (f) => f.billed.purchase),
  line('invoice', 'adjustments_usd', (f) => f.billed.adjustment),
  line('invoice', 'credits_usd', (f) => f.billed.credit),
  line('invoice', 'refunds_usd', (f) => f.billed.refund),
  line('invoice', 'tax_usd', (f) => f.billed.tax),
  line('invoice', 'invoice_total_usd', invoiceTotalOf, 'footing'),
  line('verification', 'verified_high_usd', (f) => f.verified.HIGH),
  line('verification', 'verified_medium_usd', (f) => f.verified.MEDIUM),
  line('verification', 'verified_low_usd', (f) => f.verified.LOW),
  line('verification', 'verified_unverified_usd', (f) => f.verified.UNVERIFIED),
  line('verification', 'not_observable_usd', (f) => f.notObservablePico),
  line('verification', 'not_yet_observed_usd', (f) => f.notYetObservedPico),
  line('verification', 'not_compared_usd', (f) => f.notComparedPico),
  line('verification', 'across_accounts_usd', (f) => f.acrossAccountsPico),
  line('verification', 'explained_by_findings_usd', explainedByFindingsOf),
  line('verification', 'unexplained_usd', (f) => f.unexplainedPico),
  line('verification', 'restated_since_closing_usd', (f) => f.restatedPico),
  line('verification', 'billed_usage_usd', (f) => f.billed.usage, 'footing'),
  line('verification', 'not_matched_by_calls_usd', (f) => f.notMatchedPico, 'memo'),
  line('verification', 'not_matched_rate_usd', (f) => f.notMatchedRatePico, 'memo'),
  line('verification', 'in_findings_usd', (f) => f.inFindingsPico, 'memo'),
  line('verification', 'disputed_usd', (f) => f.disputedPico, 'memo'),
  line('verification', 'credited_usd', (f) => f.creditedPico, 'memo'),
];
