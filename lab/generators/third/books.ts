/** A provider's books: every line once rounded as it is printed. Coarser documents are sums of these lines. */
import { billedModel, type Line } from './booking.js';
import { HOUR } from './calendar.js';
import { METERS, type Tariff, type Tier } from './tariffs.js';

/** A charge of one meter on one day. */
export interface Charge {
  provider: string;
  accountId: string;
  day: number;
  tariff: Tariff;
  model: string;
  project: string;
  keyId: string;
  isBatch: boolean;
  isLong: boolean;
  isElsewhere: boolean;
  tier: Tier;
  meter: number;
  count: number;
  pico: bigint;
}

/** The counts of one hour. */
export interface Counted extends Omit<Charge, 'day' | 'meter' | 'count' | 'pico'> {
  hour: number;
  counts: number[];
  requests: number;
}

/** The circumstances that a provider's bill keeps apart. */
interface Kept {
  key: boolean;
  batch: boolean;
  flex: boolean;
  long: boolean;
  place: boolean;
  /** Unit of its amounts in 1e-15 dollars. */
  unit: bigint;
}

/** OpenAI adds batch and flex to the standard line; Cost Explorer's usage types have no length. */
const KEPT: Record<string, Kept> = {
  openai: { key: true, batch: false, flex: false, long: true, place: false, unit: 1_000_000n },
  anthropic: { key: false, batch: true, flex: false, long: true, place: true, unit: 100_000_000n },
  aws_bedrock: { key: false, batch: true, flex: true, long: false, place: false, unit: 100_000n },
  azure_openai: { key: false, batch: true, flex: true, long: true, place: true, unit: 1_000_000_000n },
};

interface Open {
  head: Omit<Charge, 'meter' | 'count' | 'pico'>;
  counts: number[];
  femto: bigint[];
}

export class Books {
  readonly #charges = new Map<string, Open>();
  readonly #counted = new Map<string, Counted>();

  charge(accountId: string, day: number, line: Line): void {
    const { tariff, use, counts, prices } = line;
    const { provider } = tariff;
    const kept = KEPT[provider] as Kept;
    const tier = use.tier === 'flex' && !kept.flex ? 'standard' : use.tier;
    const head = {
      provider,
      accountId,
      day,
      tariff,
      model: billedModel(line),
      project: line.project,
      keyId: kept.key ? line.keyId : '',
      isBatch: kept.batch && use.isBatch,
      isLong: kept.long && use.isLong,
      isElsewhere: kept.place && use.isElsewhere,
      tier,
    };
    const name = `${day} ${nameOf(head)}`;
    let open = this.#charges.get(name);
    if (!open) {
      open = { head, counts: METERS.map(() => 0), femto: METERS.map(() => 0n) };
      this.#charges.set(name, open);
    }
    for (let meter = 0; meter < METERS.length; meter += 1) {
      const count = counts[meter] as number;
      if (count === 0) continue;
      open.counts[meter] = (open.counts[meter] as number) + count;
      open.femto[meter] = (open.femto[meter] as bigint) + BigInt(count) * (prices[meter] as bigint);
    }
  }

  count(accountId: string, at: number, line: Line): void {
    const { tariff, use, project, keyId, counts } = line;
    const hour = Math.floor(at / HOUR) * HOUR;
    const head = {
      provider: tariff.provider,
      accountId,
      tariff,
      model: billedModel(line),
      project,
      keyId,
      ...use,
    };
    const name = `${hour} ${nameOf(head)}`;
    const known = this.#counted.get(name) ?? {
      ...head,
      hour,
      counts: METERS.map(() => 0),
      requests: 0,
    };
    this.#counted.set(name, known);
    known.requests += 1;
    for (let meter = 0; meter < METERS.length; meter += 1)
      known.counts[meter] = (known.counts[meter] as number) + (counts[meter] as number);
  }

  /** In the order of day and name. */
  charges(): Charge[] {
    const names = [...this.#charges.keys()].sort();
    return names.flatMap((name) => {
      const { head, counts, femto } = this.#charges.get(name) as Open;
      const unit = (KEPT[head.provider] as Kept).unit;
      return METERS.flatMap((_, meter) =>
        counts[meter] === 0
          ? []
          : [{ ...head, meter, count: counts[meter] as number, pico: rounded(femto[meter] as bigint, unit) }],
      );
    });
  }

  counted(): Counted[] {
    const names = [...this.#counted.keys()].sort();
    return names.map((name) => this.#counted.get(name) as Counted);
  }
}

function nameOf(head: Omit<Charge, 'day' | 'meter' | 'count' | 'pico'>): string {
  const { accountId, model, project, keyId, isBatch, isLong, isElsewhere, tier } = head;
  return [accountId, model, project, keyId, isBatch, isLong, isElsewhere, tier].join(' ');
}

const FEMTO_PER_PICO = 1_000n;

/** To the nearest unit, in pico-dollars; amounts are never negative. */
const rounded = (femto: bigint, unit: bigint): bigint =>
  (((2n * femto + unit) / (2n * unit)) * unit) / FEMTO_PER_PICO;

/** Groups in the order of their first items. */
export function groupBy<T>(items: readonly T[], nameOfItem: (item: T) => string): T[][] {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const name = nameOfItem(item);
    const group = groups.get(name);
    if (group) group.push(item);
    else groups.set(name, [item]);
  }
  return [...groups.values()];
}

const PICO = 1_000_000_000_000n;

/** Dollars with exactly `digits` decimals; the amount has no more. */
export function dollars(pico: bigint, digits: number): string {
  const fraction = (pico % PICO).toString().padStart(12, '0').slice(0, digits);
  return digits === 0 ? String(pico / PICO) : `${pico / PICO}.${fraction}`;
}
