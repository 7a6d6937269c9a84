import type { FindingLine } from './finding.js';

/** A line of a finding as JSON holds it: whole numbers that may be larger than a JSON number as their decimal texts. */
export type FindingLineText = {
  [name in keyof FindingLine]: bigint extends FindingLine[name]
    ? string | (null extends FindingLine[name] ? null : never)
    : FindingLine[name];
};

/** The lines of a finding as they are stored: an exact round trip with `linesFromText`. */
export function linesToText(lines: readonly FindingLine[]): FindingLineText[] {
  return lines.map((line) => ({
    ...line,
    billedQuantity: textOrNull(line.billedQuantity),
    observedQuantity: String(line.observedQuantity),
    billedRate: textOrNull(line.billedRate),
    expectedRate: textOrNull(line.expectedRate),
    billedPico: String(line.billedPico),
    expectedPico: String(line.expectedPico),
  }));
}

export function linesFromText(lines: readonly FindingLineText[]): FindingLine[] {
  return lines.map((line) => ({
    ...line,
    billedQuantity: bigintOrNull(line.billedQuantity),
    observedQuantity: BigInt(line.observedQuantity),
    billedRate: bigintOrNull(line.billedRate),
    expectedRate: bigintOrNull(line.expectedRate),
    billedPico: BigInt(line.billedPico),
    expectedPico: BigInt(line.expectedPico),
  }));
}

const textOrNull = (value: bigint | null) => (value === null ? null : String(value));
const bigintOrNull = (text: string | null) => (text === null ? null : BigInt(text));

/**
 * Explanations and findings as JSON keeps them between the steps of a run: whole numbers beyond a JSON number are marked,
 * so that reading returns exactly what was written, whatever fields there are.
 */
const MARK = '#';

/** JSON text of a value without functions and maps; bigints are `{"#": "…"}`. */
export function explanationToText(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'bigint' ? { [MARK]: part.toString() } : part,
  );
}

/** The argument of `explanationToText`, from its parsed JSON. The caller names the type that it wrote. */
export function explanationFromJson<T>(json: unknown): T {
  return revive(json) as T;
}

function revive(json: unknown): unknown {
  if (Array.isArray(json)) return json.map(revive);
  if (json === null || typeof json !== 'object') return json;
  const { [MARK]: digits } = json as Record<string, unknown>;
  if (typeof digits === 'string') return BigInt(digits);
  return Object.fromEntries(Object.entries(json).map(([key, part]) => [key, revive(part)]));
}
