import { decimalFromScaled, divideHalfEven, type Pico } from '../../money.js';
import type { FocusCharge, FocusPricing } from './focusCharge.js';

/** Price lists of language models name their rates by the million tokens. */
const PRICE_UNIT = '1000000 Tokens';
const MILLION_DIGITS = 6;
/** A charge that is no number of priced units is one of itself. */
export const LUMP_UNIT = 'Charges';

const MONEY_SCALE = 12;
const QUANTITY_SCALE = 12;

/** The rates of a charge whose whole quantity has one: pico-dollars per million tokens. */
export interface ChargeRatesPerMillion {
  list: Pico;
  agreed: Pico;
}

const text = (value: bigint, scale: number): string => decimalFromScaled(value, scale);

/** In what a charge is priced, and how that becomes what it is billed in. */
interface PricingMoney {
  currency: string;
  /** What was billed, in the currency of the prices. */
  billed: bigint;
  /** Whether money comes back: also where so little of it that it is nothing in the currency of the prices. */
  isNegative: boolean;
  /** Null where the charge's own amounts do not show the rate. */
  toBilling(amount: bigint): bigint | null;
}

/** Price lists are in US dollars; a bill that nobody can convert has no prices but its own. */
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
 * Prices of a usage charge. With rates: quantity in millions × rate, exactly, in as many digits as that takes. In
 * another currency than the rates' the unit price is converted by the bill's own rate and rounded to 1e-12; the costs are
 * its exact product. Without: one charge, at the list price that is known for the whole of it (`listPico`), at the one
 * that the bill names, else at what was billed.
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

/** What was bought beside usage: one of it, at its price. */
export function pricePurchase(charge: FocusCharge): FocusPricing {
  const money = moneyOf(charge);
  return priceLump(money, money.billed, money.billed, 'none');
}

/** Taxes, credits and corrections have no unit: every cost is what was billed (FOCUS 1.2, ListCost and ContractedCost). */
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

/** Use that no bill has: none of it was priced. `rates` are what it would have cost. */
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

/** Unit prices are never negative (FOCUS 1.2, ListUnitPrice): a negative charge is minus one. */
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
