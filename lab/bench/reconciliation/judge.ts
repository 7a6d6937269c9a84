/** Judges a world's bills and calls with the product: documents in, findings out, with the time of the engine. */
import type { BilledRow } from '../../../domain/billing/billedRow.js';
import { aheadMicrosOf } from '../../../domain/billing/billingDay.js';
import type { KeyUse, SuspectKey } from '../../../domain/billing/providerKeys.js';
import { dayOf, MICROS_PER_DAY, microsOfDay } from '../../../domain/period.js';
import { PROVIDERS, type Provider } from '../../../domain/providers.js';
import type { Finding, SeriesExplanation } from '../../../domain/reconciliation/engine/index.js';

import type {
  BilledCell,
  DayInput,
  GapBucket,
  UsageCell,
} from '../../../domain/reconciliation/matching/cells.js';
import type { ChargePrices } from '../../../domain/reconciliation/matching/charges.js';
import type { BillDocument, GeneratedWorld } from '../../generators/world.js';
import { pricesOf } from './books.js';
import { type ByDay, billedCellsOf, dayKey, usageCellsOf } from './cells.js';
import { type Clocks, clocksOf } from './clocks.js';
import { type FetchedBills, fetchBills } from './fetchRows.js';
import { type Observed, observe } from './observe.js';

/** The whole input of one provider's reconciliation. */
export interface ProviderInput {
  provider: Provider;
  days: DayInput[];
  suspects: SuspectKey[];
}

export interface Judged {
  prices: ChargePrices;
  inputs: ProviderInput[];
  findings: Finding[];
  explanations: SeriesExplanation[];
  buckets: { provider: Provider; bucket: GapBucket }[];
  /** Time of the domain functions alone, without fetching, reading and pricing. */
  runMs: number;
}

/** The result of the domain's composition for one provider. */
export type Reconcile = (
  input: ProviderInput,
  prices: ChargePrices,
) => { buckets: GapBucket[]; findings: Finding[]; explanations: SeriesExplanation[] };

/** A world without its calls and documents: what remains to compare findings with the truth. */
export type WorldFacts = Omit<GeneratedWorld, 'calls' | 'bills'>;

/** Fetches, reads, groups, prices and judges a world at one visibility. */
export async function judgeWorld(
  world: GeneratedWorld,
  documents: readonly BillDocument[],
  reconcile: Reconcile,
): Promise<Judged> {
  const prices = pricesOf(world);
  return judgeInputs(await prepareInputs(world, documents, prices), prices, reconcile);
}

/** The engine's input: the cells of the documents, and the calls priced and added up. */
export async function prepareInputs(
  world: GeneratedWorld,
  documents: readonly BillDocument[],
  prices: ChargePrices,
): Promise<ProviderInput[]> {
  const bills = await fetchBills(world, documents);
  const billed = billedCellsOf(bills.rows);
  const usage = usageCellsOf(bills.rows);
  let observed = observe(world, prices.agreed);
  const clocks = clocksOf({ billed, usage, observed: observed.cells }, prices.agreed);
  if (clocks.size > 0) observed = observe(world, prices.agreed, clocks);
  return inputsOf(world, { bills, billed, usage, observed, clocks });
}

/** Runs the engine over prepared inputs. */
export function judgeInputs(inputs: ProviderInput[], prices: ChargePrices, reconcile: Reconcile): Judged {
  const judged: Judged = { prices, inputs, findings: [], explanations: [], buckets: [], runMs: 0 };
  const started = performance.now();
  for (const input of judged.inputs) {
    const result = reconcile(input, prices);
    judged.findings.push(...result.findings);
    judged.explanations.push(...result.explanations);
    for (const bucket of result.buckets) judged.buckets.push({ provider: input.provider, bucket });
  }
  judged.runMs = performance.now() - started;
  return judged;
}

interface Read {
  bills: FetchedBills;
  billed: ByDay<BilledCell>;
  usage: ByDay<UsageCell>;
  observed: Observed;
  clocks: Clocks;
}

function inputsOf(world: GeneratedWorld, { bills, billed, usage, observed, clocks }: Read): ProviderInput[] {
  const nowMicros = BigInt(world.readAtSeconds) * 1_000_000n;
  return PROVIDERS.flatMap((provider) => {
    const covered = bills.covered.filter((day) => day.provider === provider);
    const days = [...new Set(covered.map(({ day }) => day))].sort();
    if (days.length === 0) return [];
    const inputs = days.map((day): DayInput => {
      const key = dayKey(provider, day);
      return {
        day,
        nowMicros,
        billed: billed.get(key) ?? [],
        usage: usage.get(key) ?? [],
        observed: observed.cells.get(key) ?? [],
        covered: covered
          .filter((one) => one.day === day)
          .map(({ accountId, provisionalDays }) => ({
            accountId,
            fetchedAtMicros: nowMicros,
            provisionalDays,
          })),
        observedSince: new Map(
          [...(observed.since.get(provider) ?? [])].map(([account, at]) => [
            account,
            at + aheadMicrosOf(provider, day, clocks.get(provider) ?? 0),
          ]),
        ),
        sources: observed.sources.get(key) ?? new Map(),
        withHours: false,
      };
    });
    return [{ provider, days: inputs, suspects: suspectsOf(provider, world, bills) }];
  });
}

/**
 * Finds suspect keys as db/billing/providerKeys.ts does: unregistered keys and linked accounts on the bill, and keys used
 * after their revocation.
 */
function suspectsOf(provider: Provider, world: GeneratedWorld, bills: FetchedBills): SuspectKey[] {
  const calls = world.calls.filter((call) => call.provider === provider);
  const called = new Set(calls.flatMap(({ keyId, accountId }) => [keyId, accountId ?? keyId]));
  const registered = new Map(
    world.keys.filter((key) => key.provider === provider).map((key) => [key.keyId, key.revokedAtSeconds]),
  );
  const found = new Map<string, Mutable<SuspectKey>>();
  const rowsOf = new Map<string, BilledRow[]>();
  const ownRows = bills.rows.filter((one) => one.provider === provider);
  const knowsAccounts = ownRows.some((one) => {
    const linked = linkedAccountOf(one);
    return linked !== undefined && (registered.has(linked) || called.has(linked));
  });
  for (const sourced of ownRows) {
    const { accountId, row } = sourced;
    const { day, amountPico } = row;
    const apiKey = row.apiKey || (knowsAccounts ? linkedAccountOf(sourced) : undefined);
    if (!apiKey) continue;
    const revokedAt = registered.get(apiKey);
    if (revokedAt === undefined ? called.has(apiKey) : !isAfter(row.periodStartMicros, revokedAt)) continue;
    const reason = revokedAt === undefined ? 'unknown' : 'billed_after_revocation';
    const key = `${accountId}\n${apiKey}\n${reason}`;
    const suspect = found.get(key) ?? {
      provider,
      providerAccountId: accountId,
      providerKeyId: apiKey,
      reason,
      firstDay: day,
      lastDay: day,
      billedPico: null,
    };
    if (day < suspect.firstDay) suspect.firstDay = day;
    if (day > suspect.lastDay) suspect.lastDay = day;
    if (amountPico !== null) suspect.billedPico = (suspect.billedPico ?? 0n) + amountPico;
    rowsOf.set(key, [...(rowsOf.get(key) ?? []), row]);
    found.set(key, suspect);
  }
  return [...found].map(([key, suspect]) => ({ ...suspect, uses: usesOf(rowsOf.get(key) ?? []) }));
}

/** The linked account of a line of AWS other than the one that pays. */
function linkedAccountOf({ provider, accountId, row }: FetchedBills['rows'][number]): string | undefined {
  const { apiKey, project } = row;
  return provider === 'aws_bedrock' && !apiKey && project && project !== accountId ? project : undefined;
}

/**
 * A suspect key's usage by day and model, as in db/billing/providerKeys.ts: tokens of the bill, else of the usage
 * report.
 */
function usesOf(rows: readonly BilledRow[]): KeyUse[] {
  const uses = new Map<string, KeyUse & { quantities: Partial<Record<string, bigint>> }>();
  const hasCounts = (row: BilledRow) =>
    rows.some(
      (one) => one.feed === 'cost' && one.day === row.day && one.model === row.model && one.quantity !== null,
    );
  for (const row of rows) {
    const { day, model, tokenClass, amountPico, quantity } = row;
    if (model === null || tokenClass === 'requests' || tokenClass === 'other') continue;
    const key = JSON.stringify([day, model]);
    const known = uses.get(key) ?? { day, model, billedPico: null, quantities: {} };
    const counts = quantity !== null && (row.feed === 'cost' || !hasCounts(row));
    uses.set(key, {
      ...known,
      billedPico: amountPico === null ? known.billedPico : (known.billedPico ?? 0n) + amountPico,
      quantities: counts
        ? { ...known.quantities, [tokenClass]: (known.quantities[tokenClass] ?? 0n) + quantity }
        : known.quantities,
    });
  }
  return [...uses.values()];
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

const isAfter = (micros: bigint, seconds: number | null) =>
  seconds !== null && micros >= BigInt(seconds) * 1_000_000n;

/** The UTC days of a world, first to last. */
export function daysOf(world: Pick<GeneratedWorld, 'firstDay' | 'lastDay'>): string[] {
  const days: string[] = [];
  for (let at = microsOfDay(world.firstDay); dayOf(at) <= world.lastDay; at += MICROS_PER_DAY)
    days.push(dayOf(at));
  return days;
}
