import { absPico, decimalFromPico, decimalFromScaled, type Pico } from '../../money.js';
import { microsOfDay } from '../../period.js';
import type { Provider } from '../../providers.js';
import { DayRates, isTokenClass } from '../../reconciliation/audit/dayRates.js';
import type { ChargePrices, DayCharge } from '../../reconciliation/matching/charges.js';
import { apportion } from '../../reconciliation/matching/classLines.js';
import { ALL_ACCOUNTS } from '../../reconciliation/matching/matchDay.js';
import type { ChargeCategory } from '../billedRow.js';
import type {
  ComparedDay,
  FocusCategory,
  FocusCharge,
  FocusMatch,
  FocusPricing,
  FocusRecord,
} from './focusCharge.js';
import {
  type ChargeRatesPerMillion,
  LUMP_UNIT,
  matchCharges,
  priceless,
  pricePurchase,
  priceUnbilled,
  priceUsage,
  type UnbilledUse,
} from './focusPricing.js';

/** FOCUS has no refunds: returned money that is no credit is an adjustment. */
const CATEGORIES: Readonly<Record<ChargeCategory, FocusCategory>> = {
  usage: 'Usage',
  tax: 'Tax',
  credit: 'Credit',
  refund: 'Adjustment',
  purchase: 'Purchase',
  adjustment: 'Adjustment',
};

/** The account name of a comparison over all accounts. */
const ANY_ACCOUNT = '(all)';

export interface FocusDay {
  provider: Provider;
  day: string;
  charges: readonly FocusCharge[];
  /** The day's usage after comparison, with the usage report's quantities and the rates. */
  judged: readonly DayCharge[];
  compared: readonly ComparedDay[];
  prices: ChargePrices;
}

/**
 * One row for each charge, and rows of zero cost for observed unbilled usage. Sums equal the bill and the computed
 * cost.
 */
export function focusRecordsOf(day: FocusDay): FocusRecord[] {
  const names = new ChargeNames(day);
  const usage = day.charges.filter((charge) => charge.chargeCategory === 'usage');
  const { matches, unbilled } = matchCharges(usage, (charge) => names.comparedOf(charge), day.compared);
  const quantities = quantitiesOf(usage, names);
  return [
    ...day.charges.map((charge) =>
      recordOf(day, charge, names.judgedOf(charge), quantities.get(charge), matches.get(charge) ?? null),
    ),
    ...unbilled.map((use) => unbilledRecord(day, use, names)),
  ];
}

/** Maps the names of a charge in the bill, the prices and the comparison to each other. */
class ChargeNames {
  readonly #rates: DayRates;
  readonly #list: DayRates;
  readonly #judged: ReadonlyMap<string, DayCharge>;
  readonly #compared: ReadonlyMap<string, ComparedDay>;

  constructor({ provider, day, judged, compared, prices }: FocusDay) {
    const dayMicros = microsOfDay(day);
    this.#rates = new DayRates(prices.agreed, provider, dayMicros);
    this.#list = prices.agreed === prices.list ? this.#rates : new DayRates(prices.list, provider, dayMicros);
    this.#judged = new Map(
      judged.map((charge) => [meterKey(charge, charge.label, charge.serviceTier), charge]),
    );
    this.#compared = new Map(compared.map((one) => [`${one.accountId}\n${one.model}`, one]));
  }

  /** The compared charge that contains this one. */
  judgedOf(charge: FocusCharge): DayCharge | undefined {
    if (charge.isOfMonth) return undefined;
    const hasMeter = charge.model !== null && charge.observable;
    const tier = hasMeter ? this.#list.tier(charge.serviceTier) : charge.serviceTier;
    return this.#judged.get(meterKey(charge, this.#labelOf(charge, this.#list), tier));
  }

  comparedOf(charge: FocusCharge): ComparedDay | undefined {
    if (charge.isOfMonth) return undefined;
    const name = this.#labelOf(charge, this.#rates);
    return (
      this.#compared.get(`${charge.accountId}\n${name}`) ?? this.#compared.get(`${ALL_ACCOUNTS}\n${name}`)
    );
  }

  /** The rates of ordinary calls of a model: standard tier, no batch, not long. */
  ordinaryRates(model: string, tokenClass: FocusCharge['tokenClass']): ChargeRatesPerMillion | null {
    if (!isTokenClass(tokenClass)) return null;
    const ordinary = {
      serviceTier: 'standard',
      isBatch: false,
      longContext: false,
      contextBand: 0,
      region: null,
    };
    const list = this.#list.rate(model, tokenClass, ordinary);
    const agreed = this.#rates.rate(model, tokenClass, ordinary);
    return !list || list.assumed || !agreed || agreed.assumed
      ? null
      : { list: list.rate, agreed: agreed.rate };
  }

  #labelOf(charge: FocusCharge, rates: DayRates): string {
    return charge.model !== null && charge.observable
      ? rates.nameOf(rates.entryKey(charge.model))
      : charge.lineItem;
  }
}

type MeterFields = Pick<FocusCharge, 'accountId' | 'tokenClass' | 'isBatch' | 'longContext' | 'region'>;

function meterKey(charge: MeterFields, label: string, tier: string): string {
  const { accountId, tokenClass, isBatch, longContext, region } = charge;
  return JSON.stringify([accountId, label, tokenClass, tier, isBatch, longContext, region]);
}

/** The known quantity of a charge, and its share of a list price that several charges have together. */
interface Share {
  quantity: bigint;
  source: 'bill' | 'usage_report';
  listPico: Pico | null;
  agreedPico: Pico | null;
}

/** Each charge's quantity, else its share of the meter's reported usage in proportion to the billed amount. */
function quantitiesOf(usage: readonly FocusCharge[], names: ChargeNames): Map<FocusCharge, Share> {
  const rowsOf = new Map<DayCharge, FocusCharge[]>();
  const shares = new Map<FocusCharge, Share>();
  for (const charge of usage) {
    const judged = names.judgedOf(charge);
    const known = judged && rowsOf.get(judged);
    if (known) known.push(charge);
    else if (judged) rowsOf.set(judged, [charge]);
    else if (charge.quantity !== null)
      shares.set(charge, { quantity: charge.quantity, source: 'bill', listPico: null, agreedPico: null });
  }
  for (const [judged, rows] of rowsOf) {
    const isBilled = rows.every((charge) => charge.quantity !== null);
    if (!isBilled && judged.quantity === null) continue;
    const quantities = isBilled
      ? rows.map((charge) => charge.quantity ?? 0n)
      : apportion(
          judged.quantity ?? 0n,
          rows.map((charge) => absPico(charge.amountPico ?? 0n)),
        );
    const divided = (pico: Pico | null) => (pico === null ? null : apportion(pico, quantities.map(absPico)));
    const list = divided(judged.listPico);
    const agreed = divided(judged.agreedPico);
    rows.forEach((charge, at) => {
      shares.set(charge, {
        quantity: quantities[at] ?? 0n,
        source: isBilled ? 'bill' : 'usage_report',
        listPico: list?.[at] ?? null,
        agreedPico: agreed?.[at] ?? null,
      });
    });
  }
  return shares;
}

function recordOf(
  day: FocusDay,
  charge: FocusCharge,
  judged: DayCharge | undefined,
  share: Share | undefined,
  match: FocusMatch | null,
): FocusRecord {
  const category = CATEGORIES[charge.chargeCategory];
  const isUsage = category === 'Usage';
  const counted = share !== undefined && share.quantity !== 0n ? share : undefined;
  const billedCost = decimalFromPico(charge.originalAmount);
  return {
    provider: day.provider,
    day: day.day,
    category,
    charge,
    description: charge.lineItem,
    consumedQuantity: !isUsage ? null : counted ? decimalFromScaled(counted.quantity, 12) : '1',
    consumedUnit: !isUsage ? null : counted ? unitOf(charge) : LUMP_UNIT,
    quantitySource: !isUsage ? null : (counted?.source ?? 'none'),
    billedCost,
    // A purchase for later use gets its effective cost when it is used (FOCUS 1.2, EffectiveCost).
    effectiveCost: category === 'Purchase' ? '0' : billedCost,
    pricing: pricingOf(charge, category, judged, counted),
    match,
  };
}

function pricingOf(
  charge: FocusCharge,
  category: FocusCategory,
  judged: DayCharge | undefined,
  share: Share | undefined,
): FocusPricing {
  if (category === 'Purchase') return pricePurchase(charge);
  if (category !== 'Usage') return priceless(charge);
  const hasRate = judged !== undefined && judged.listPico !== null && judged.listRate !== null;
  const isAgreed = hasRate && judged.agreedPico !== null && judged.agreedRate !== null;
  const list = hasRate ? (judged.listRate ?? 0n) : 0n;
  return priceUsage(
    charge,
    share?.quantity ?? null,
    hasRate ? { list, agreed: isAgreed ? (judged.agreedRate ?? list) : list } : null,
    { listPico: share?.listPico ?? null, agreedPico: share?.agreedPico ?? null },
  );
}

function unitOf(charge: Pick<FocusCharge, 'tokenClass' | 'quantityUnit'>): string {
  if (isTokenClass(charge.tokenClass)) return 'Tokens';
  return charge.tokenClass === 'requests' ? 'Requests' : unitName(charge.quantityUnit);
}

function unitName(unit: string | null): string {
  const words = (unit ?? '').split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  if (words.length === 0) return 'Units';
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join(' ');
}

function unbilledRecord(day: FocusDay, use: UnbilledUse, names: ChargeNames): FocusRecord {
  const { tokenClass, observedQuantity } = use.line;
  const charge: FocusCharge = {
    accountId: use.day.accountId === ALL_ACCOUNTS ? ANY_ACCOUNT : use.day.accountId,
    isOfMonth: false,
    chargeCategory: 'usage',
    lineItem: `${use.day.model}, ${tokenClass} (not billed)`,
    model: use.day.model,
    tokenClass,
    serviceTier: 'standard',
    isBatch: null,
    longContext: null,
    region: null,
    observable: true,
    project: null,
    apiKey: null,
    teamId: null,
    quantity: observedQuantity,
    quantityUnit: null,
    amountPico: 0n,
    listPico: null,
    contractedPico: null,
    currency: 'USD',
    originalAmount: 0n,
  };
  return {
    provider: day.provider,
    day: day.day,
    category: 'Usage',
    charge,
    description: charge.lineItem,
    consumedQuantity: decimalFromScaled(observedQuantity, 12),
    consumedUnit: unitOf(charge),
    quantitySource: 'observed',
    billedCost: '0',
    effectiveCost: '0',
    pricing: priceUnbilled(names.ordinaryRates(use.day.model, tokenClass)),
    match: {
      status: 'unbilled',
      reason: use.day.reason,
      grade: use.day.grade,
      provisional: use.day.provisional,
      observedPico: use.observedPico,
      gapPico: -use.observedPico,
      finding: use.day.finding,
      disputeId: use.day.disputeId,
    },
  };
}
