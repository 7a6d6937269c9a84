/**
 * A provider's books: charges in the rows of its cost report, and usage in the rows of its usage report. Each cost
 * row is rounded once, as the provider prints it; coarser documents sum these rows, so that every visibility has
 * the same total.
 */
import { DAY_SECONDS, dayOf, HOUR_SECONDS } from '../support/days.js';
import { FEMTO_PER_PICO, roundTo } from '../support/money.js';
import { grouped } from './grouped.js';
import { CLASSES, type Rates } from './rateBook.js';

/** A request or a part of one, as the provider booked it. */
export interface Charge {
  provider: string;
  accountId: string;
  keyId: string;
  project: string | null;
  /** The id on the bill. */
  model: string;
  isBatch: boolean;
  isLong: boolean;
  tier: string;
  geo: string;
  /** In the order of CLASSES. */
  tokens: readonly number[];
  rates: Rates;
  requests: number;
}

export interface CostRow {
  provider: string;
  accountId: string;
  day: number;
  keyId: string | null;
  project: string | null;
  model: string;
  /** Index into CLASSES. */
  tokenClass: number;
  isBatch: boolean;
  isLong: boolean;
  tier: string;
  geo: string;
  quantity: number;
  pico: bigint;
}

export interface UsageRow {
  provider: string;
  accountId: string;
  /** Unix seconds of the hour. */
  hour: number;
  keyId: string;
  project: string | null;
  model: string;
  isBatch: boolean;
  isLong: boolean;
  tier: string;
  geo: string;
  tokens: number[];
  requests: number;
}

/** A line of the bill that is not for tokens. */
export interface ExtraLine {
  provider: string;
  accountId: string;
  day: number;
  /** OpenAI's `line_item` or Anthropic's `description`. */
  label: string;
  /** Fees and surcharges are usage; credits are not. */
  kind: 'fee' | 'surcharge' | 'credit';
  project: string | null;
  pico: bigint;
}

/**
 * The precision of printed amounts: dollars with nine digits, cents with five, or a file's digits; in
 * femto-dollars.
 */
const PRINTED_UNIT: Record<string, bigint> = {
  openai: 1_000_000n,
  anthropic: 100_000_000n,
  aws_bedrock: 100_000n,
};
const FILE_UNIT = 1_000_000n;

/** The smallest step of an amount on the provider's bill, in femto-dollars. */
export const printedUnit = (provider: string): bigint => PRINTED_UNIT[provider] ?? FILE_UNIT;

/** OpenAI's plain line includes batch and flex tokens; Anthropic's cost report has no keys. */
function costGrain(charge: Charge): Pick<CostRow, 'keyId' | 'isBatch' | 'tier' | 'geo' | 'isLong'> {
  const { isBatch, isLong, tier, geo, keyId } = charge;
  if (charge.provider === 'openai')
    return { keyId, isBatch: false, isLong, tier: tier === 'priority' ? tier : 'standard', geo: '' };
  if (charge.provider === 'anthropic') return { keyId: null, isBatch, isLong, tier: 'standard', geo };
  return { keyId, isBatch, isLong: false, tier, geo: '' };
}

/** The rows of one line by class. Consecutive charges at equal rates are multiplied at once. */
interface Line {
  head: Omit<CostRow, 'tokenClass' | 'quantity' | 'pico'>;
  quantities: number[];
  femto: bigint[];
  pendingRates: Rates;
  pending: number[];
}

const zeros = (): number[] => CLASSES.map(() => 0);

function settle(line: Line): void {
  for (let at = 0; at < CLASSES.length; at += 1) {
    const pending = line.pending[at] as number;
    if (pending === 0) continue;
    line.femto[at] = (line.femto[at] as bigint) + BigInt(pending) * (line.pendingRates[at] as bigint);
    line.pending[at] = 0;
  }
}

function addTo(counts: number[], tokens: readonly number[]): void {
  for (let at = 0; at < counts.length; at += 1) counts[at] = (counts[at] as number) + (tokens[at] as number);
}

export class Ledger {
  private readonly lines = new Map<string, Line>();
  private readonly usages = new Map<string, UsageRow>();
  readonly extras: ExtraLine[] = [];

  /** Books a charge on the day in which `seconds` falls. */
  addCost(charge: Charge, seconds: number): void {
    const day = dayOf(seconds);
    const grain = costGrain(charge);
    const { provider, accountId, project, model, tokens, rates } = charge;
    const name = `${accountId}|${day}|${grain.keyId}|${project}|${model}|${grain.isBatch}|${grain.isLong}|${grain.tier}|${grain.geo}`;
    let line = this.lines.get(name);
    if (!line) {
      const head = { ...grain, provider, accountId, day, project, model };
      const femto = CLASSES.map(() => 0n);
      line = { head, quantities: zeros(), femto, pendingRates: rates, pending: zeros() };
      this.lines.set(name, line);
    }
    if (line.pendingRates !== rates) {
      settle(line);
      line.pendingRates = rates;
    }
    addTo(line.pending, tokens);
    addTo(line.quantities, tokens);
  }

  /** Counts a charge's tokens in the usage report. */
  addUsage(charge: Charge, seconds: number): void {
    const hour = Math.floor(seconds / HOUR_SECONDS) * HOUR_SECONDS;
    const { provider, accountId, keyId, project, model, isBatch, isLong, tier, geo, tokens, requests } =
      charge;
    const name = `${accountId}|${hour}|${keyId}|${project}|${model}|${isBatch}|${isLong}|${tier}|${geo}`;
    const known = this.usages.get(name);
    if (known) {
      addTo(known.tokens, tokens);
      known.requests += requests;
    } else
      this.usages.set(name, {
        provider,
        accountId,
        hour,
        keyId,
        project,
        model,
        isBatch,
        isLong,
        tier,
        geo,
        tokens: [...tokens],
        requests,
      });
  }

  /** The cost rows, rounded as printed, in the order of day, model and class. */
  costRows(): CostRow[] {
    const rows: CostRow[] = [];
    for (const line of this.lines.values()) {
      settle(line);
      const unit = printedUnit(line.head.provider);
      for (let tokenClass = 0; tokenClass < CLASSES.length; tokenClass += 1) {
        const quantity = line.quantities[tokenClass] as number;
        if (quantity === 0) continue;
        const pico = roundTo(line.femto[tokenClass] as bigint, unit) / FEMTO_PER_PICO;
        rows.push({ ...line.head, tokenClass, quantity, pico });
      }
    }
    return sorted(rows, (row) => [
      row.day,
      row.model,
      row.project,
      row.keyId,
      row.tier,
      row.isBatch,
      row.isLong,
      row.geo,
      row.tokenClass,
    ]);
  }

  usageRows(): UsageRow[] {
    return sorted([...this.usages.values()], (row) => [
      row.hour / DAY_SECONDS,
      row.model,
      row.project,
      row.keyId,
      row.tier,
      row.isBatch,
      row.isLong,
      row.geo,
    ]);
  }
}

/** Rows of usage by report bucket: hours from a day on, whole days before it. In chronological order. */
export function bucketsOf(
  rows: readonly UsageRow[],
  hoursFromDay: number,
): { start: number; width: number; inside: UsageRow[] }[] {
  const widthOf = (row: UsageRow) => (dayOf(row.hour) >= hoursFromDay ? HOUR_SECONDS : DAY_SECONDS);
  const starts = grouped(rows, (row) => Math.floor(row.hour / widthOf(row)) * widthOf(row));
  return [...starts]
    .map(([start, inside]) => ({ start, width: widthOf(inside[0] as UsageRow), inside }))
    .sort((a, b) => a.start - b.start);
}

/** Sorts by the keys in turn, numbers as numbers and other values as text. */
function sorted<T>(rows: T[], keysOf: (row: T) => readonly unknown[]): T[] {
  const keyed = rows.map((row) => ({ row, keys: keysOf(row) }));
  keyed.sort((a, b) => {
    for (let at = 0; at < a.keys.length; at += 1) {
      const [x, y] = [a.keys[at], b.keys[at]];
      if (x === y) continue;
      if (typeof x === 'number' && typeof y === 'number') return x - y;
      return String(x) < String(y) ? -1 : 1;
    }
    return 0;
  });
  return keyed.map(({ row }) => row);
}
