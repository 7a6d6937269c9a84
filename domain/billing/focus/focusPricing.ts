import { absPico, decimalFromScaled, divideHalfEven, type Pico } from '../../money.js';
import type { ClassLine } from '../../reconciliation/matching/cells.js';
import { apportion } from '../../reconciliation/matching/classLines.js';
import type { BilledClass } from '../billedRow.js';
import type { ComparedDay, FocusCharge, FocusMatch, FocusPricing } from './focusCharge.js';

/** Price lists of language models state rates per million tokens. */
const PRICE_UNIT = '1000000 Tokens';
const MILLION_DIGITS = 6;
/** A charge that is not a quantity of priced units has a quantity of one. */
export const LUMP_UNIT = 'Charges';

const MONEY_SCALE = 12;
const QUANTITY_SCALE = 12;

/** The rates of a charge with one rate for its whole quantity: pico-dollars per million tokens. */
export interface ChargeRatesPerMillion {
  list: Pico;
  agreed: Pico;
}

const text = (value: bigint, scale: number): string => decimalFromScaled(value, scale);

/** The pricing amount of a charge and its conversion to the billing currency. */
interface PricingMoney {
  currency: string;
  billed: bigint;
  /** true for returned money, also if it rounds to zero in the pricing currency. */
  isNegative: boolean;
  /** null: the charge's own amounts do not show the rate. */
  toBilling(amount: bigint): bigint | null;
}

/** Price lists are in US dollars; a bill without an exchange rate has only its own prices. */
function moneyOf({ currency, amountPico, originalAmount }: FocusCharge): PricingMoney {
  const same = (amount: bigint) => amount;
  const isNegative = originalAmount < 0n;
  if (amountPico === null) return { currency, billed: originalAmount, isNegative, toBilling: same };
  const billed = amountPico;
  if (currency === 'USD') return { currency, billed, isNegative: billed < 0n, toBilling: same };
  return {
    currency: 'USD',
    billed,
    isNegative: billed < 0n || (billed === 0n && isNegative),
    toBilling: (amount) => {
      if (amount === billed) return originalAmount;
      if (billed === 0n || originalAmount === 0n) return null;
      return billed < 0n
        ? divideHalfEven(amount * -originalAmount, -billed)
        : divideHalfEven(amount * originalAmount, billed);
    },
  };
}

/**
 * Prices a usage charge in the bill's currency: exactly by rates, else as one charge at the known, stated or
 * billed price.
 */
export function priceUsage(
  charge: FocusCharge,
  quantity: bigint | null,
  rates: ChargeRatesPerMillion | null,
  known: { listPico: Pico | null; agreedPico: Pico | null },
): FocusPricing {
  const money = moneyOf(charge);
  const isPriced = charge.amountPico !== null;
  const byRate = rates && quantity !== null && isPriced ? priceByRate(money, quantity, rates) : null;
  if (byRate) return byRate;
  if (known.listPico !== null && isPriced)
    return priceLump(money, known.listPico, known.agreedPico ?? known.listPico, 'price_list');
  if (charge.listPico !== null && isPriced)
    return priceLump(money, charge.listPico, charge.contractedPico ?? money.billed, 'bill');
  return priceLump(money, money.billed, money.billed, 'none');
}

function priceByRate(
  money: PricingMoney,
  quantity: bigint,
  rates: ChargeRatesPerMillion,
): FocusPricing | null {
  const [list, agreed] = [money.toBilling(rates.list), money.toBilling(rates.agreed)];
  if (list === null || agreed === null) return null;
  const scale = QUANTITY_SCALE + MILLION_DIGITS;
  return {
    quantity: text(quantity, scale),
    unit: PRICE_UNIT,
    listUnitPrice: text(list, MONEY_SCALE),
    listCost: text(list * quantity, MONEY_SCALE + scale),
    contractedUnitPrice: text(agreed, MONEY_SCALE),
    contractedCost: text(agreed * quantity, MONEY_SCALE + scale),
    listSource: 'price_list',
    currency: money.currency,
    currencyListUnitPrice: text(rates.list, MONEY_SCALE),
    currencyContractedUnitPrice: text(rates.agreed, MONEY_SCALE),
    currencyBilled: text(money.billed, MONEY_SCALE),
  };
}

/** Prices a purchase: a quantity of one, at its price. */
export function pricePurchase(charge: FocusCharge): FocusPricing {
  const money = moneyOf(charge);
  return priceLump(money, money.billed, money.billed, 'none');
}

/**
 * Taxes, credits and corrections have no unit: every cost is the billed amount (FOCUS 1.2, ListCost and
 * ContractedCost).
 */
export function priceless(charge: FocusCharge): FocusPricing {
  const money = moneyOf(charge);
  const billed = text(charge.originalAmount, MONEY_SCALE);
  return {
    quantity: null,
    unit: null,
    listUnitPrice: null,
    listCost: billed,
    contractedUnitPrice: null,
    contractedCost: billed,
    listSource: null,
    currency: money.currency,
    currencyListUnitPrice: null,
    currencyContractedUnitPrice: null,
    currencyBilled: text(money.billed, MONEY_SCALE),
  };
}

/** Unbilled usage has no price of its own; `rates` show what it would have cost. */
export function priceUnbilled(rates: ChargeRatesPerMillion | null): FocusPricing {
  const list = text(rates?.list ?? 0n, MONEY_SCALE);
  const agreed = text(rates?.agreed ?? 0n, MONEY_SCALE);
  return {
    quantity: '0',
    unit: rates ? PRICE_UNIT : LUMP_UNIT,
    listUnitPrice: list,
    listCost: '0',
    contractedUnitPrice: agreed,
    contractedCost: '0',
    listSource: rates ? 'price_list' : 'none',
    currency: 'USD',
    currencyListUnitPrice: list,
    currencyContractedUnitPrice: agreed,
    currencyBilled: '0',
  };
}

/** Unit prices are never negative (FOCUS 1.2, ListUnitPrice), so a negative charge has a quantity of minus one. */
function priceLump(
  money: PricingMoney,
  list: bigint,
  contracted: bigint,
  listSource: FocusPricing['listSource'],
): FocusPricing {
  const sign = money.isNegative ? -1n : 1n;
  const [shownList, shownContracted] = [money.toBilling(list), money.toBilling(contracted)];
  const fits = shownList !== null && shownContracted !== null && list * sign >= 0n && contracted * sign >= 0n;
  if (!fits) return priceLump(money, money.billed, money.billed, 'none');
  return {
    quantity: text(sign, 0),
    unit: LUMP_UNIT,
    listUnitPrice: text(shownList * sign, MONEY_SCALE),
    listCost: text(shownList, MONEY_SCALE),
    contractedUnitPrice: text(shownContracted * sign, MONEY_SCALE),
    contractedCost: text(shownContracted, MONEY_SCALE),
    listSource,
    currency: money.currency,
    currencyListUnitPrice: text(list * sign, MONEY_SCALE),
    currencyContractedUnitPrice: text(contracted * sign, MONEY_SCALE),
    currencyBilled: text(money.billed, MONEY_SCALE),
  };
}

/** Observed usage of a model's day that no row of the bill charges. */
export interface UnbilledUse {
  day: ComparedDay;
  line: Pick<ClassLine, 'tokenClass' | 'observedQuantity'>;
  observedPico: Pico;
}

/**
 * Divides the computed cost of each model's day among its charges, by class and then by billed amount; sums stay
 * exact.
 */
export function matchCharges(
  charges: readonly FocusCharge[],
  dayOf: (charge: FocusCharge) => ComparedDay | undefined,
  days: readonly ComparedDay[],
): { matches: Map<FocusCharge, FocusMatch>; unbilled: UnbilledUse[] } {
  const members = new Map<ComparedDay, FocusCharge[]>(days.map((day) => [day, []]));
  const matches = new Map<FocusCharge, FocusMatch>();
  for (const charge of charges) {
    const day = dayOf(charge);
    if (day) members.get(day)?.push(charge);
    else matches.set(charge, NOT_COMPARED);
  }
  const unbilled: UnbilledUse[] = [];
  for (const [day, own] of members) unbilled.push(...divide(day, own, matches));
  return { matches, unbilled };
}

const NOT_COMPARED: FocusMatch = {
  status: 'not_compared',
  reason: null,
  grade: null,
  provisional: null,
  observedPico: null,
  gapPico: null,
  finding: null,
  disputeId: null,
};

function divide(
  day: ComparedDay,
  charges: readonly FocusCharge[],
  matches: Map<FocusCharge, FocusMatch>,
): UnbilledUse[] {
  const classes = [
    ...new Set<BilledClass>([
      ...day.lines.map((line) => line.tokenClass),
      ...charges.map((charge) => charge.tokenClass),
    ]),
  ];
  if (classes.length === 0) classes.push('other');
  const lineOf = (tokenClass: BilledClass) => day.lines.find((line) => line.tokenClass === tokenClass);
  const weights = classes.map((name) => lineOf(name)?.expectedOfObservedPico ?? 0n);
  // Without known rates the cost is divided by quantities alone.
  const byQuantity = classes.map((name) => lineOf(name)?.observedQuantity ?? 0n);
  const isPriced = weights.some((weight) => weight > 0n);
  const shares = apportion(day.ourCostPico, (isPriced ? weights : byQuantity).map(absPico));
  const unbilled: UnbilledUse[] = [];
  classes.forEach((tokenClass, at) => {
    const share = shares[at] ?? 0n;
    const own = charges.filter((charge) => charge.tokenClass === tokenClass);
    const observedQuantity = lineOf(tokenClass)?.observedQuantity ?? 0n;
    if (own.length === 0) {
      if (share !== 0n || observedQuantity !== 0n)
        unbilled.push({ day, line: { tokenClass, observedQuantity }, observedPico: share });
      return;
    }
    const parts = apportion(
      share,
      own.map((charge) => absPico(charge.amountPico ?? charge.originalAmount)),
    );
    own.forEach((charge, index) => {
      matches.set(charge, matchOf(day, charge, parts[index] ?? 0n));
    });
  });
  return unbilled;
}

function matchOf(day: ComparedDay, charge: FocusCharge, observedPico: Pico): FocusMatch {
  return {
    status: day.matchStatus,
    reason: day.reason,
    grade: day.grade,
    provisional: day.provisional,
    observedPico,
    gapPico: charge.amountPico === null ? null : charge.amountPico - observedPico,
    finding: day.finding,
    disputeId: day.disputeId,
  };
}
