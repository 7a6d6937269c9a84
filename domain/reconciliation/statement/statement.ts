import type { BilledClass, ChargeCategory } from '../../billing/billedRow.js';
import { compare } from '../../compare.js';
import { absPico, type Pico } from '../../money.js';
import { OTHER_LABELS } from '../audit/audit.js';
import type { UnjudgedReason } from '../audit/judgeMeter.js';
import type { DayCharge } from '../matching/charges.js';
import { type CountedCopy, coverageOf, type MonthCoverage } from './statementCoverage.js';
import {
  addBucket,
  addCharge,
  addFigures,
  type ComparedBucket,
  noFigures,
  type StatementFigures,
} from './statementFigures.js';

/** What an account was billed on a day in one category. */
export interface StatementTotal {
  provider: string;
  accountId: string;
  day: string;
  chargeCategory: ChargeCategory;
  amountPico: Pico;
}

/** What was asked back of an account's days in the month. */
export interface AskedBack {
  provider: string;
  /** '' where calls of unknown account were compared with the sum over all accounts. */
  accountId: string;
  disputedPico: Pico;
  creditedPico: Pico;
}

/** What runs found on an account's days in the month. */
export interface FoundOfAccount {
  provider: string;
  /** '' where calls of unknown account were compared with the sum over all accounts. */
  accountId: string;
  /** As the financial summary shows it, in whole cents. */
  unexplainedPico: Pico;
  /** What findings with an explanation come to, signed. */
  inFindingsPico: Pico;
}

export interface StatementInput {
  /** First day of the month. */
  firstDay: string;
  nowMicros: bigint;
  /** What the bills say now. */
  totals: readonly StatementTotal[];
  /** What they said when the month was closed; null: it is open. */
  frozen: readonly StatementTotal[] | null;
  /** Usage charges of the month, provider-day by provider-day. */
  charges: readonly { provider: string; charges: readonly DayCharge[] }[];
  compared: readonly ComparedBucket[];
  copies: readonly CountedCopy[];
  /** Of the month's days, now. */
  found: readonly FoundOfAccount[];
  asked: readonly AskedBack[];
  /** Accounts that had a bill in this month or in the months beside it. */
  accounts: readonly { provider: string; accountId: string }[];
}

/** Billed usage without a list price, by label and why. */
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
  /** Largest amount first; beyond NOT_PRICED_LABELS_MAX added up under OTHER_LABELS. */
  notPriced: NotPriced[];
}

/** Labels that a statement names: a bill can have one for each of its rows. */
export const NOT_PRICED_LABELS_MAX = 1_000;

/** The month's statement: pure, the same for the same input. */
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

/** What a closed month's bills say now is priced and verified; how far they have moved since is an item of its own. */
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

/** The largest by their labels; the others added up, by all else that is known of them, so that the sum stays. */
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
 * Adds what the runs verified. A provider-day counts as compared when it has buckets. What an account was billed on such
 * a day and none of its own buckets holds was compared as a sum over accounts; these sums come back by provider.
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

/** The figures of an account; without one, the provider's alone, like what was compared over all accounts. */
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
