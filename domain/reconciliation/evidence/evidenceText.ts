import { QUANTITY_ONE } from '../../billing/billedRow.js';
import { TOKEN_CLASSES, type TokenClass } from '../../events/event.js';
import { MICROS_PER_HOUR } from '../../period.js';
import type {
  BilledCell,
  BucketReason,
  HourCount,
  HourOfCalls,
  ObservedCell,
  UsageCell,
  Visibility,
} from '../matching/cells.js';
import type { ModelLevel } from '../matching/linkModels.js';

/** Evidence as JSON with compact lists and exact decimal texts. */

const VERSION = 1;

type Json = string | number | boolean | null;

type SourceJson = [
  serviceName: string,
  calls: number,
  withoutCache: number,
  named?: number,
  refused?: number,
];

interface EvidenceJson extends Omit<SeriesDayEvidence, 'billed' | 'usage' | 'observed' | 'sources'> {
  v: number;
  billed: Json[][];
  usage: Json[][];
  observed: (Json | string[] | Json[][])[][];
  sources: SourceJson[];
}

const textOf = (value: bigint | null): string | null => (value === null ? null : value.toString());
const bigintOf = (text: Json | undefined): bigint => BigInt(text as string);
const maybeBigint = (text: Json | undefined): bigint | null => (text === null ? null : bigintOf(text));

/** `evidenceFromJson` reads the result back exactly. */
export function evidenceToJson(evidence: SeriesDayEvidence): unknown {
  const json: EvidenceJson = {
    ...evidence,
    v: VERSION,
    billed: evidence.billed.map(billedToJson),
    usage: evidence.usage.map(usageToJson),
    observed: evidence.observed.map(vectorToJson),
    sources: evidence.sources.map(sourceToJson),
  };
  return json;
}

/** Throws RangeError for another version of the format. */
export function evidenceFromJson(value: unknown): SeriesDayEvidence {
  const { v, ...json } = value as EvidenceJson;
  if (v !== VERSION) throw new RangeError(`evidence of form ${v} cannot be read, only of form ${VERSION}`);
  return {
    ...json,
    billed: json.billed.map(billedFromJson),
    usage: json.usage.map(usageFromJson),
    observed: json.observed.map(vectorFromJson),
    sources: json.sources.map(sourceFromJson),
  };
}

function sourceToJson(one: ObservedSource): SourceJson {
  const { serviceName, calls, callsWithoutCache, namedByAnswer = 0, refused = 0 } = one;
  return namedByAnswer + refused === 0
    ? [serviceName, calls, callsWithoutCache]
    : [serviceName, calls, callsWithoutCache, namedByAnswer, refused];
}

function sourceFromJson([
  serviceName,
  calls,
  callsWithoutCache,
  named = 0,
  refused = 0,
]: SourceJson): ObservedSource {
  return {
    serviceName,
    calls,
    callsWithoutCache,
    ...(named > 0 && { namedByAnswer: named }),
    ...(refused > 0 && { refused }),
  };
}

function billedToJson(cell: BilledCell): Json[] {
  return [
    cell.accountId,
    cell.lineItem,
    cell.model,
    cell.tokenClass,
    cell.serviceTier,
    cell.isBatch,
    cell.longContext,
    cell.region,
    cell.observable,
    cell.rowCount,
    textOf(cell.quantity),
    textOf(cell.amountPico),
    textOf(cell.listAmountPico),
    textOf(cell.roundingPico),
    ...(cell.tierNamed ? [true] : []),
  ];
}

function billedFromJson(values: readonly Json[]): BilledCell {
  return {
    accountId: values[0] as string,
    lineItem: values[1] as string,
    model: values[2] as string | null,
    tokenClass: values[3] as BilledCell['tokenClass'],
    serviceTier: values[4] as string,
    isBatch: values[5] as boolean | null,
    longContext: values[6] as boolean | null,
    region: values[7] as string | null,
    observable: values[8] as boolean,
    rowCount: values[9] as number,
    quantity: maybeBigint(values[10]),
    amountPico: bigintOf(values[11]),
    listAmountPico: maybeBigint(values[12]),
    roundingPico: bigintOf(values[13]),
    ...(values[14] === true ? { tierNamed: true } : {}),
  };
}

function usageToJson(cell: UsageCell): Json[] {
  return [
    cell.accountId,
    cell.model,
    cell.tokenClass,
    cell.serviceTier,
    cell.isBatch,
    cell.longContext,
    cell.region,
    textOf(cell.quantity),
    textOf(cell.hourMicros),
    ...hoursToJson(cell.hours ?? []),
  ];
}

/** The first hour since 1970, then the count of each hour from it on: whole tokens as numbers. */
function hoursToJson(hours: readonly HourCount[]): Json[] {
  const [first] = hours;
  if (!first) return [];
  const counts: Json[] = [];
  for (const { hourMicros, quantity } of hours) {
    const place = Number((hourMicros - first.hourMicros) / MICROS_PER_HOUR);
    while (counts.length < place) counts.push(0);
    const isWhole = quantity % QUANTITY_ONE === 0n && quantity / QUANTITY_ONE <= Number.MAX_SAFE_INTEGER;
    counts.push(isWhole ? Number(quantity / QUANTITY_ONE) : textOf(quantity));
  }
  return [Number(first.hourMicros / MICROS_PER_HOUR), ...counts];
}

function hoursFromJson([first, ...counts]: readonly Json[]): HourCount[] {
  return counts.flatMap((count, at) =>
    count === 0
      ? []
      : [
          {
            hourMicros: BigInt(Number(first) + at) * MICROS_PER_HOUR,
            quantity: typeof count === 'number' ? BigInt(count) * QUANTITY_ONE : bigintOf(count),
          },
        ],
  );
}

function usageFromJson(values: readonly Json[]): UsageCell {
  return {
    accountId: values[0] as string,
    model: values[1] as string | null,
    tokenClass: values[2] as UsageCell['tokenClass'],
    serviceTier: values[3] as string,
    isBatch: values[4] as boolean | null,
    longContext: values[5] as boolean | null,
    region: values[6] as string | null,
    quantity: bigintOf(values[7]),
    hourMicros: maybeBigint(values[8]),
    ...(values.length > 9 && { hours: hoursFromJson(values.slice(9)) }),
  };
}

function vectorToJson(cell: ObservedVector): (Json | string[] | Json[][])[] {
  return [
    cell.model,
    cell.serviceTier,
    cell.isBatch,
    cell.contextBand,
    cell.status,
    cell.calls,
    textOf(cell.computedCostPico),
    cell.unpriced,
    cell.priceGaps,
    cell.unmetered,
    TOKEN_CLASSES.map((name) => cell.tokens[name].toString()),
    ...(cell.hours ? [cell.hours.map(hourOfVectorToJson)] : []),
  ];
}

const hourOfVectorToJson = ({ hourMicros, tokens }: HourOfVector): Json[] => [
  Number(hourMicros / MICROS_PER_HOUR),
  ...tokens,
];

const hourOfVectorFromJson = ([hour, ...tokens]: readonly Json[]): HourOfVector => ({
  hourMicros: BigInt(Number(hour)) * MICROS_PER_HOUR,
  tokens: tokens as number[],
});

function vectorFromJson(values: readonly (Json | string[] | Json[][])[]): ObservedVector {
  const counts = values[10] as string[];
  const hours = values[11] as Json[][] | undefined;
  return {
    model: values[0] as string,
    serviceTier: values[1] as string,
    isBatch: values[2] as boolean,
    contextBand: values[3] as number,
    status: values[4] as ObservedVector['status'],
    calls: values[5] as number,
    computedCostPico: bigintOf(values[6] as string),
    unpriced: values[7] as number,
    priceGaps: values[8] as number,
    unmetered: values[9] as number,
    tokens: Object.fromEntries(TOKEN_CLASSES.map((name, at) => [name, bigintOf(counts[at])])) as Record<
      TokenClass,
      bigint
    >,
    ...(hours && { hours: hours.map(hourOfVectorFromJson) }),
  };
}

export const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

export function sortedBy<T>(things: readonly T[], keyOf: (thing: T) => string): T[] {
  return things
    .map((thing) => ({ thing, key: keyOf(thing) }))
    .sort((a, b) => byText(a.key, b.key))
    .map(({ thing }) => thing);
}

export const billedKey = (cell: BilledCell): string =>
  `${cell.accountId}|${cell.model}|${cell.lineItem}|${cell.tokenClass}|${cell.serviceTier}|${cell.isBatch}|${cell.longContext}|${cell.region}|${cell.observable}|${cell.amountPico}|${cell.quantity}`;

export const usageKey = (cell: UsageCell): string =>
  `${cell.accountId}|${cell.model}|${cell.tokenClass}|${cell.serviceTier}|${cell.isBatch}|${cell.longContext}|${cell.region}|${cell.hourMicros}|${cell.quantity}`;

const vectorKey = (cell: Omit<ObservedVector, 'hours'>): string =>
  `${cell.model}|${cell.serviceTier}|${cell.isBatch}|${cell.contextBand}|${cell.status}`;

export const observedKey = (cell: ObservedCell): string =>
  `${cell.accountId}|${vectorKey(cell)}|${cell.hourMicros}`;

/**
 * A day's calls with their hours summed, in a fixed order. `keepsHours`: each vector keeps its hours by class as well, if
 * they are known of all of its calls.
 */
export function vectorsOf(observed: readonly ObservedCell[], keepsHours = false): ObservedVector[] {
  const vectors = new Map<string, ObservedVector>();
  const hoursOf = new Map<string, Map<bigint, number[]> | undefined>();
  for (const { accountId: _, hourMicros: __, hours: ___, ...cell } of observed) {
    const key = vectorKey(cell);
    const known = vectors.get(key);
    vectors.set(key, known ? added(known, cell) : cell);
  }
  for (const cell of keepsHours ? observed : []) {
    const key = vectorKey(cell);
    const known = hoursOf.has(key) ? hoursOf.get(key) : new Map<bigint, number[]>();
    hoursOf.set(key, known && addHours(known, cell));
  }
  return [...vectors]
    .sort(([a], [b]) => byText(a, b))
    .map(([key, vector]) => {
      const hours = hoursOf.get(key);
      if (!hours) return vector;
      const sorted = [...hours].sort(([a], [b]) => Number(a - b));
      return { ...vector, hours: sorted.map(([hourMicros, tokens]) => ({ hourMicros, tokens })) };
    });
}

/** Adds a cell's hours by class; undefined: they are not known. */
function addHours(hours: Map<bigint, number[]>, cell: ObservedCell): Map<bigint, number[]> | undefined {
  const whole = {
    hourMicros: cell.hourMicros,
    tokens: TOKEN_CLASSES.map((name) => Number(cell.tokens[name])),
  };
  const own: readonly Pick<HourOfCalls, 'hourMicros' | 'tokens'>[] =
    cell.hours ?? (cell.calls > 0 ? [whole] : []);
  for (const { hourMicros, tokens } of own) {
    if (!tokens) return undefined;
    const known = hours.get(hourMicros);
    hours.set(hourMicros, known ? known.map((count, at) => count + (tokens[at] ?? 0)) : [...tokens]);
  }
  return hours;
}

function added(a: ObservedVector, b: ObservedVector): ObservedVector {
  const tokens = { ...a.tokens };
  for (const name of Object.keys(tokens) as (keyof typeof tokens)[]) tokens[name] += b.tokens[name];
  return {
    ...a,
    tokens,
    calls: a.calls + b.calls,
    computedCostPico: a.computedCostPico + b.computedCostPico,
    unpriced: a.unpriced + b.unpriced,
    priceGaps: a.priceGaps + b.priceGaps,
    unmetered: a.unmetered + b.unmetered,
  };
}

/**
 * A day's usage report with its hours summed, in a fixed order. `keepsHours`: each cell keeps its hours with usage as well, if
 * the report has hours, so that days compared with and without hours have the same evidence.
 */
export function dayUsageOf(usage: readonly UsageCell[], keepsHours = false): UsageCell[] {
  const cells = new Map<string, { cell: UsageCell; hours: Map<bigint, bigint> }>();
  for (const { hours: own = [], hourMicros, ...cell } of usage) {
    const whole = { ...cell, hourMicros: null, quantity: 0n };
    const key = usageKey(whole);
    const known = cells.get(key) ?? { cell: whole, hours: new Map<bigint, bigint>() };
    cells.set(key, known);
    known.cell.quantity += cell.quantity;
    if (!keepsHours) continue;
    for (const one of hourMicros === null ? own : [{ hourMicros, quantity: cell.quantity }])
      if (one.quantity > 0n)
        known.hours.set(one.hourMicros, (known.hours.get(one.hourMicros) ?? 0n) + one.quantity);
  }
  return [...cells]
    .sort(([a], [b]) => byText(a, b))
    .map(([, { cell, hours }]) => (hours.size > 0 ? { ...cell, hours: inOrder(hours) } : cell));
}

const inOrder = (hours: ReadonlyMap<bigint, bigint>): HourCount[] =>
  [...hours]
    .map(([hourMicros, quantity]) => ({ hourMicros, quantity }))
    .sort((a, b) => Number(a.hourMicros - b.hourMicros));

/** The services of the calls of some accounts and models, most calls first. */
export function sourcesOf(
  sources: ReadonlyMap<string, ReadonlyMap<string, readonly ObservedSource[]>>,
  isOwn: (accountId: string) => boolean,
  models: readonly string[],
): ObservedSource[] {
  const byService = new Map<string, ObservedSource>();
  const own = [...sources].flatMap(([account, ofAccount]) => (isOwn(account) ? [ofAccount] : []));
  for (const source of own.flatMap((of) => models.flatMap((model) => of.get(model) ?? []))) {
    const known = byService.get(source.serviceName);
    const sum = (of: (one: ObservedSource) => number | undefined) =>
      ((known && of(known)) ?? 0) + (of(source) ?? 0);
    const namedByAnswer = sum((one) => one.namedByAnswer);
    const refused = sum((one) => one.refused);
    byService.set(source.serviceName, {
      serviceName: source.serviceName,
      calls: sum((one) => one.calls),
      callsWithoutCache: sum((one) => one.callsWithoutCache),
      ...(namedByAnswer > 0 && { namedByAnswer }),
      ...(refused > 0 && { refused }),
    });
  }
  return [...byService.values()]
    .sort((a, b) => b.calls - a.calls || byText(a.serviceName, b.serviceName))
    .slice(0, SOURCES_MAX);
}

/** One model's day at one account with all inputs of explanations; nothing in it is derived from prices. */

/** Calls of a day with the same circumstances and the same end; their hours are summed. */
export interface ObservedVector extends Omit<ObservedCell, 'hourMicros' | 'hours' | 'accountId'> {
  /** The hours with calls, on days that are not as the bill has them; absent: none are known. */
  hours?: readonly HourOfVector[];
}

/** Whole tokens by class in the order of TOKEN_CLASSES. */
export interface HourOfVector {
  readonly hourMicros: bigint;
  readonly tokens: readonly number[];
}

export interface SeriesDayEvidence {
  /** UTC day, or the provider's own day if its clock is shifted. */
  day: string;
  /** The billed account; '': calls of unknown account are compared with the sum over all accounts. */
  accountId: string;
  /** The model name in buckets and findings. */
  model: string;
  /** The id that prices quantities: the billed one if there is one. */
  pricedAs: string | null;
  /** The reliability of the link between the billed and the observed id. */
  level: ModelLevel;
  /** Set for charges that no call can show and for unknown labels, which are not searched. */
  fixedReason: BucketReason | null;
  visibility: Visibility;
  provisional: boolean;
  accountKnown: boolean;
  notYetObserved: boolean;
  billed: readonly BilledCell[];
  /** The provider's own usage report: whole days, with its hours on days that are not as the bill has them. */
  usage: readonly UsageCell[];
  observed: readonly ObservedVector[];
  /** The services of these calls with the limits of their clients, most calls first; at most SOURCES_MAX. */
  sources: readonly ObservedSource[];
}

/** The origin of calls. */
export interface ObservedSource {
  serviceName: string;
  calls: number;
  /** Calls whose client cannot separate cached from uncached input, or any class at all. */
  callsWithoutCache: number;
  /** Calls whose model is the answering one instead of the requested one; absent: none is known. */
  namedByAnswer?: number;
  /** Attempts that the provider refused with an HTTP status of 400 or more; absent: none is known. */
  refused?: number;
}

export const SOURCES_MAX = 5;
