import type { BilledClass } from '../../billing/billedRow.js';
import type { Pico } from '../../money.js';
import { microsOfDay } from '../../period.js';
import type { PriceBook } from '../../pricing/priceBook.js';
import type { Provider } from '../../providers.js';
import { DayRates, isTokenClass } from '../audit/dayRates.js';
import {
  type ChargeRates,
  findRateHints,
  isAmountOf,
  judgeMeter,
  type RateHint,
  type UnjudgedReason,
  type Verdict,
} from '../audit/judgeMeter.js';
import type { BilledCell, UsageCell } from './cells.js';
import { expectedOfMeter } from './classLines.js';
import { buildMeters, type Meter } from './meters.js';

/** The prices of an organization: the agreed ones, and the list without its contract. Equal if there is no contract. */
export interface ChargePrices {
  agreed: PriceBook;
  list: PriceBook;
}

/** A day's charge of one account, model and class, as far as the bill separates charges, with its right amount. */
export interface DayCharge {
  accountId: string;
  /** The model, or the provider's label if it names none. */
  label: string;
  tokenClass: BilledClass;
  serviceTier: string;
  /** null: the bill does not separate batch. */
  isBatch: boolean | null;
  longContext: boolean | null;
  region: string | null;
  /** In 1e-12 units; null: neither the bill nor the usage report has it. */
  quantity: bigint | null;
  billedPico: Pico;
  /** The quantity at the agreed rates, and below at list; null: the quantity or the rate is unknown. */
  agreedPico: Pico | null;
  listPico: Pico | null;
  /** The bill's own list price. */
  givenListPico: Pico | null;
  roundingPico: Pico;
  /** Pico-dollars per million if one rate applies to the whole quantity; null: a mixture. */
  agreedRate: Pico | null;
  listRate: Pico | null;
  verdict: Verdict;
  looksLike: readonly RateHint[];
  /** The source of the agreed rate, the agreement of the price sources, and whether one contradicts. */
  priceSource: string;
  agreement: string;
  disputed: boolean;
}

/** A day's usage charges, judged by the bill and usage report alone; amounts add up to the cells'. */
export function chargesOfDay(
  provider: Provider,
  day: string,
  billed: readonly BilledCell[],
  usage: readonly UsageCell[],
  prices: ChargePrices,
): DayCharge[] {
  const dayMicros = microsOfDay(day);
  const list = new DayRates(prices.list, provider, dayMicros);
  const agreed = prices.agreed === prices.list ? list : new DayRates(prices.agreed, provider, dayMicros);
  const groups = new Map<string, { label: string; pricedAs: string; cells: BilledCell[] }>();
  const charges: DayCharge[] = [];
  for (const cell of billed) {
    // Without an amount in dollars there is nothing to compare with a rate.
    if (cell.unconverted) continue;
    if (cell.model === null || !cell.observable) {
      charges.push(chargeOfLine(cell));
      continue;
    }
    const entry = list.entryKey(cell.model);
    const key = `${cell.accountId}\n${entry}`;
    const group = groups.get(key) ?? { label: list.nameOf(entry), pricedAs: cell.model, cells: [] };
    group.cells.push(cell);
    groups.set(key, group);
  }
  for (const [key, { label, pricedAs, cells }] of groups) {
    const used = usage.filter(
      (cell) => cell.model !== null && `${cell.accountId}\n${list.entryKey(cell.model)}` === key,
    );
    const accountId = cells[0]?.accountId ?? '';
    for (const meter of buildMeters(cells, used, [], agreed, pricedAs))
      charges.push(chargeOfMeter({ accountId, label, pricedAs }, meter, { agreed, list }));
  }
  return charges.filter((charge) => charge.billedPico !== 0n || (charge.quantity ?? 0n) !== 0n);
}

const UNKNOWN_PRICE = {
  agreedPico: null,
  listPico: null,
  agreedRate: null,
  listRate: null,
  looksLike: [],
  priceSource: '',
  agreement: 'unknown',
  disputed: false,
} as const;

/** A line without a model, or one that no call can show: it has no rate to compare. */
function chargeOfLine(cell: BilledCell): DayCharge {
  const reason: UnjudgedReason = cell.observable ? 'unparsed_line' : 'not_observable';
  return {
    ...UNKNOWN_PRICE,
    accountId: cell.accountId,
    label: cell.lineItem,
    tokenClass: cell.tokenClass,
    serviceTier: cell.serviceTier,
    isBatch: cell.isBatch,
    longContext: cell.longContext,
    region: cell.region,
    quantity: cell.quantity,
    billedPico: cell.amountPico,
    givenListPico: cell.listAmountPico,
    roundingPico: cell.roundingPico * BigInt(cell.rowCount),
    verdict: cell.amountPico < 0n ? 'negative_amount' : reason,
  };
}

function chargeOfMeter(
  place: { accountId: string; label: string; pricedAs: string },
  meter: Meter,
  rates: ChargeRates,
): DayCharge {
  const { pricedAs } = place;
  const judged = judgeMeter(meter, pricedAs, rates.agreed);
  const listPico = sureListOf(meter, pricedAs, rates.list);
  const verdict = withContract(judged.verdict, judged.expectedPico, listPico, meter);
  return {
    accountId: place.accountId,
    label: place.label,
    tokenClass: meter.tokenClass,
    serviceTier: meter.serviceTier,
    isBatch: meter.isBatch,
    longContext: meter.longContext,
    region: meter.region,
    quantity: meter.quantity,
    billedPico: meter.amountPico,
    agreedPico: judged.expectedPico,
    listPico,
    givenListPico: meter.listAmountPico,
    roundingPico: meter.roundingPico,
    agreedRate: oneRateOf(meter, pricedAs, rates.agreed),
    listRate: oneRateOf(meter, pricedAs, rates.list),
    verdict,
    looksLike: verdict === 'differs' ? findRateHints(meter, pricedAs, rates) : [],
    ...rates.agreed.provenance(pricedAs),
  };
}

/**
 * An amount whose mix is unknown is judged after all if it equals the list price exactly: the contract was not
 * applied.
 */
function withContract(
  verdict: Verdict,
  agreedPico: Pico | null,
  listPico: Pico | null,
  meter: Meter,
): Verdict {
  if (verdict !== 'length_unknown' && verdict !== 'batch_unknown') return verdict;
  return listPico !== null && listPico !== agreedPico && isAmountOf(meter, listPico) ? 'differs' : verdict;
}

/** The quantity at list, if the list is sure of the rate. */
function sureListOf(meter: Meter, pricedAs: string, list: DayRates): Pico | null {
  const { tokenClass } = meter;
  if (!isTokenClass(tokenClass)) return null;
  const isSure = meter.parts.every(
    (part) => list.rate(pricedAs, tokenClass, part.circumstances)?.assumed === false,
  );
  return isSure ? expectedOfMeter(meter, pricedAs, list) : null;
}

function oneRateOf(meter: Meter, pricedAs: string, rates: DayRates): Pico | null {
  const { tokenClass } = meter;
  if (!isTokenClass(tokenClass)) return null;
  const found = new Set(
    meter.parts
      .filter((part) => part.quantity > 0n)
      .map((part) => rates.rate(pricedAs, tokenClass, part.circumstances)?.rate),
  );
  const [only, more] = found;
  return only === undefined || more !== undefined ? null : only;
}
