/**
 * Evidence as JSON holds it: compact, since each series-day has one, and exact, since amounts are worked out from it
 * again. Lists of values stand for objects; bigints are decimal texts.
 */
import { TOKEN_CLASSES, type TokenClass } from '../../events/event.js';
import type { BilledCell, UsageCell } from '../matching/cells.js';
import type { ObservedSource, ObservedVector, SeriesDayEvidence } from './seriesDay.js';

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
  observed: [...Json[], string[]][];
  sources: SourceJson[];
}

const textOf = (value: bigint | null): string | null => (value === null ? null : value.toString());
const bigintOf = (text: Json | undefined): bigint => BigInt(text as string);
const maybeBigint = (text: Json | undefined): bigint | null => (text === null ? null : bigintOf(text));

/** What `evidenceFromJson` reads back to the last digit. */
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

/** Throws RangeError for another version of the form. */
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
  ];
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
  };
}

function vectorToJson(cell: ObservedVector): [...Json[], string[]] {
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
  ];
}

function vectorFromJson(values: readonly (Json | string[])[]): ObservedVector {
  const counts = values[10] as string[];
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
  };
}
