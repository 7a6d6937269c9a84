/** The texts of a finding: whole sentences for readers, and JSON for storage. */
import { claimDollars } from '../../../claims/financialSummary.js';
import { absPico, type Pico } from '../../../money.js';
import type { Blame, Finding, FindingDay, FindingLine, Gate } from './finding.js';

/**
 * The reason for some days of a finding: its cause, and the dollars of exactly these days, rounded as claims round them. A
 * dispute over a part of the days has a sentence of its own amount.
 */
export function reasonOf(
  { cause, blame }: Pick<Finding, 'cause' | 'blame'>,
  days: readonly Pick<FindingDay, 'day' | 'impactPico'>[],
): string {
  const impactPico = days.reduce((sum, one) => sum + one.impactPico, 0n);
  return `${cause} The bill is ${impactText(impactPico, blame)} ${daysText(days.map(({ day }) => day))}.`;
}

/** "on 2026-10-05", "on 3 days from 2026-10-05 to 2026-10-07". */
function daysText(days: readonly string[]): string {
  const [first, last] = [days[0] ?? '', days.at(-1) ?? ''];
  return days.length === 1 ? `on ${first}` : `on ${days.length} days from ${first} to ${last}`;
}

/** A bill is wrong only where that is the provider's mistake: else it is what the events cost that may be. */
function impactText(impactPico: Pico, blame: Blame): string {
  const dollars = claimDollars(absPico(impactPico));
  if (blame === 'provider') return `${dollars} too ${impactPico >= 0n ? 'much' : 'little'}`;
  return `${dollars} ${impactPico >= 0n ? 'above' : 'below'} what these events cost`;
}

/** The condition under which each missing gate would hold. */
export const GATE_ADVICE: Record<Gate, string> = {
  closed_period: 'Wait until the provider no longer restates these days, and fetch the bill again.',
  quantity_present:
    'Import a cost or usage report with quantities for these days: amounts alone prove little.',
  price_source_dated: 'Enter the price that held on these days with its date.',
  price_sources_agree:
    'A second source has to confirm the price: import another price list, or enter the rate of your contract.',
  classes_complete:
    'Let every call tell all its token classes and a model with a known price: some calls of these days do not.',
  coverage_or_sealed_scope:
    'Instrument the services whose calls are missing: less than 99 % of the usage was seen.',
  residual_within_tolerance:
    'A part of the difference is still without an explanation: look at the lines that remain.',
  odds_against_next:
    'Two explanations come close to each other: more days, or finer lines of the bill, tell them apart.',
  account_known:
    'Tell which account the calls belong to: name it in the events or register the provider keys.',
  evidence_needed: 'Evidence is missing that this kind of mistake needs: see docs/explanations.md.',
};

export const FINER_BILL =
  'Fetch the bill with quantities by model and class: with amounts alone the grade stays where it is.';

export const UNEXPLAINED =
  'No known mistake gives these amounts, and neither missing calls nor rounding account for them.';

export const UNKNOWN_RATE =
  'Ask the provider which rate was charged on these lines, and compare it with your price list.';
export const UNKNOWN_DISCOUNT =
  'Look for credits, free allowances or terms of yours within these lines, and compare their rates with your price list.';
export const UNKNOWN_CALLS =
  'Look for services whose calls are not sent, and for keys on the bill that nobody knows.';
export const UNKNOWN_REPEATS = 'Look for calls that come twice, as where two tools report the same calls.';

export const OLD_PRICE =
  'Nothing shows the agreed price on the bill both before and after: read it on the provider’s own price page first, since our price may be the old one.';
export const DAY_OF_A_PRICE =
  'Look up the day and the hour from which the price holds: lists give days, and a provider’s day may begin at another hour.';
export const PARTS_OF_DAYS =
  'Only parts of days show it: a whole day of the same, or the hours of the usage report, would make it sure.';

/** Said where right is less than what is entered. */
export function discountText(percents: readonly number[]): string {
  const [first] = percents;
  if (first === undefined) return '';
  return ` Right is taken for ${first} percent below what is entered, as the days about it were charged.`;
}

export const ENTER_TERMS =
  'Enter the contract under /pricing/contract-rates with its first day: this finding rests on its discount.';

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
