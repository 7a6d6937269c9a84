/**
 * A provider's books: what was charged, in the rows that its cost report would print, and what was used, in the rows of
 * its usage report. Each row of costs is rounded once, as the provider prints it; coarser documents sum these rows, so
 * that every visibility has the same total.
 */
import { DAY_SECONDS, dayOf, HOUR_SECONDS } from '../support/days.js';
import { FEMTO_PER_PICO, roundTo } from '../support/money.js';
import { CLASSES, type Rates } from './rateBook.js';

/** A request, or a part of one, as the provider booked it. */
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

/** A line of the bill that is no charge for tokens. */
export interface ExtraLine {
  provider: string;
  accountId: string;
  day: number;
  /** As OpenAI would write it in `line_item`, Anthropic in `description`. */
  label: string;
  /** Fees and surcharges are usage; credits are not. */
  kind: 'fee' | 'surcharge' | 'credit';
  project: string | null;
  pico: bigint;
}

/** What the provider prints: dollars to nine digits, cents to five, or a file's digits; in femto-dollars. */
const PRINTED_UNIT: Record<string, bigint> = {
  openai: 1_000_000n,
  anthropic: 100_000_000n,
  aws_bedrock: 100_000n,
};
const FILE_UNIT = 1_000_000n;

/** The smallest step of an amount on the provider's bill, in femto-dollars. */
export const printedUnit = (provider: string): bigint => PRINTED_UNIT[provider] ?? FILE_UNIT;

/** OpenAI folds batch and flex tokens into the plain line; Anthropic's cost report has no keys. */
function costGrain(charge: Charge): Pick<CostRow, 'keyId' | 'isBatch' | 'tier' | 'geo' | 'isLong'> {
  const { isBatch, isLong, tier, geo, keyId } = charge;
  if (charge.provider === 'openai')
    return { keyId, isBatch: false, isLong, tier: tier === 'priority' ? tier : 'standard', geo: '' };
  if (charge.provider === 'anthropic') return { keyId: null, isBatch, isLong, tier: 'standard', geo };
  return { keyId, isBatch, isLong: false, tier, geo: '' };
}

interface Collected extends Omit<CostRow, 'pico'> {
  femto: bigint;
}

export class Ledger {
  private readonly costs = new Map<string, Collected>();
  private readonly usages = new Map<string, UsageRow>();
  readonly extras: ExtraLine[] = [];

  /** Books a charge on the day in which `seconds` falls. */
  addCost(charge: Charge, seconds: number): void {
    const day = dayOf(seconds);
    const grain = costGrain(charge);
    const { provider, accountId, project, model, tokens, rates } = charge;
    const name = `${accountId}|${day}|${grain.keyId}|${project}|${model}|${grain.isBatch}|${grain.isLong}|${grain.tier}|${grain.geo}|`;
    for (let tokenClass = 0; tokenClass < CLASSES.length; tokenClass += 1) {
      const quantity = tokens[tokenClass] as number;
      if (quantity === 0) continue;
      const femto = BigInt(quantity) * (rates[tokenClass] as bigint);
      const known = this.costs.get(name + tokenClass);
      if (known) {
        known.quantity += quantity;
        known.femto += femto;
      } else
        this.costs.set(name + tokenClass, {
          ...grain,
          provider,
          accountId,
          day,
          project,
          model,
          tokenClass,
          quantity,
          femto,
        });
    }
  }

  /** Counts a charge's tokens in the usage report. */
  addUsage(charge: Charge, seconds: number): void {
    const hour = Math.floor(seconds / HOUR_SECONDS) * HOUR_SECONDS;
    const { provider, accountId, keyId, project, model, isBatch, isLong, tier, geo, tokens, requests } =
      charge;
    const name = `${accountId}|${hour}|${keyId}|${project}|${model}|${isBatch}|${isLong}|${tier}|${geo}`;
    const known = this.usages.get(name);
    if (known) {
      for (let at = 0; at < tokens.length; at += 1)
        known.tokens[at] = (known.tokens[at] as number) + (tokens[at] as number);
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

  /** The rows of costs, each rounded as it is printed, in order of day, model and class. */
  costRows(): CostRow[] {
    const rows = [...this.costs.values()].map(({ femto, ...row }) => ({
      ...row,
      pico: roundTo(femto, printedUnit(row.provider)) / FEMTO_PER_PICO,
    }));
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

/** By keys that are compared one by one; numbers as numbers, the rest as text. */
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
