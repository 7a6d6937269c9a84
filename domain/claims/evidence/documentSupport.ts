/** The support of each finding in a claim's document, in words and figures that the provider can look up or work out. */
import { picoFromDecimal } from '../../money.js';
import type { ClaimEvidence, EvidenceCell, EvidenceDispute, EvidenceRow } from './claimEvidence.js';
import { isAgreed, ratesOf } from './documentRates.js';
import { unitOf } from './documentTables.js';
import { counted, exactDollars, grouped, listed, spanText, words } from './documentTexts.js';

export interface Support {
  title: string;
  subtitle: string;
  points: { name: string; text: string }[];
}

/** Findings whose support is shown; the lines show all of them. */
export const SUPPORTED_MAX = 12;

export const cellsOf = (dispute: EvidenceDispute, { cells }: ClaimEvidence): EvidenceCell[] =>
  cells.filter((cell) => cell.dispute_id === dispute.dispute_id);

/** Units charged and units by the provider's own usage report; undefined where the report does not count all lines. */
export function reportCount(
  cells: readonly EvidenceCell[],
): { billed: string; reported: string } | undefined {
  const billed = sumOf(cells, (cell) => cell.billed_quantity);
  const reported = sumOf(cells, (cell) => cell.usage_report_quantity);
  if (billed === undefined || reported === undefined || cells.length === 0) return undefined;
  return { billed: wholeText(billed), reported: wholeText(reported) };
}

export function supportOf(dispute: EvidenceDispute, evidence: ClaimEvidence, provider: string): Support {
  const cells = cellsOf(dispute, evidence);
  const of = { dispute, evidence, provider, cells, unit: commonUnit(cells) };
  return {
    title: dispute.model,
    subtitle: `${words(dispute.kind)}, ${spanText(dispute.period_start, dispute.period_end)}`,
    points: [
      ['Bill', billText(of)],
      ['Usage report', reportText(of)],
      ['Calls', callsText(of)],
      ['Rates', ratesText(of)],
      ['Lines', linesText(of)],
    ].flatMap(([name = '', text = '']) => (text === '' ? [] : [{ name, text }])),
  };
}

interface Disputed {
  dispute: EvidenceDispute;
  evidence: ClaimEvidence;
  provider: string;
  cells: readonly EvidenceCell[];
  unit: string;
}

function commonUnit(cells: readonly EvidenceCell[]): string {
  const units = new Set(cells.map(unitOf));
  const [unit = 'units'] = units;
  return units.size === 1 ? unit : 'units';
}

const pico = (text: string | null): bigint => (text === null ? 0n : (picoFromDecimal(text) ?? 0n));
const WHOLE = 1_000_000_000_000n;

/** Undefined where a cell has none. */
function sumOf(
  cells: readonly EvidenceCell[],
  of: (cell: EvidenceCell) => string | null,
): bigint | undefined {
  return cells.some((cell) => of(cell) === null)
    ? undefined
    : cells.reduce((sum, cell) => sum + pico(of(cell)), 0n);
}

const wholeText = (quantity: bigint): string => grouped(String(quantity / WHOLE));
const unitsText = (quantity: bigint, unit: string): string => `${wholeText(quantity)} ${unit}`;

const pagesOf = (rows: readonly EvidenceRow[]): string =>
  listed([...new Set(rows.map(({ page }) => page))].sort());

/** Each row once: lines may share rows. */
function rowsOf(
  cells: readonly EvidenceCell[],
  of: (cell: EvidenceCell) => readonly EvidenceRow[],
): EvidenceRow[] {
  const rows = cells.flatMap((cell) => of(cell));
  return [...new Map(rows.map((row) => [`${row.page} ${row.document} ${row.at}`, row])).values()];
}

function billText({ dispute, cells, provider, unit }: Disputed): string {
  const rows = rowsOf(cells, (cell) => cell.rows);
  const amount = exactDollars(dispute.billed_usd_exact);
  if (rows.length === 0) return `${provider}’s bill charges ${amount} on these lines.`;
  const quantity = sumOf(cells, (cell) => (cell.quantity_rows.length > 0 ? null : cell.billed_quantity));
  const units = quantity === undefined ? '' : ` for ${unitsText(quantity, unit)}`;
  return `${counted(rows.length, 'record')} in ${pagesOf(rows)} ${rows.length === 1 ? 'charges' : 'charge'} ${amount}${units}.`;
}

function reportText({ cells, provider, unit }: Disputed): string {
  const counts = rowsOf(cells, (cell) => cell.quantity_rows);
  if (counts.length > 0) {
    const quantity = sumOf(cells, (cell) => cell.billed_quantity);
    const units = quantity === undefined ? `the ${unit}` : unitsText(quantity, unit);
    return `The bill states no units. ${provider}’s own usage report counts ${units} in ${counted(counts.length, 'record')} of ${pagesOf(counts)}.`;
  }
  const reported = sumOf(cells, (cell) => cell.usage_report_quantity);
  const billed = sumOf(cells, (cell) => cell.billed_quantity);
  const rows = rowsOf(cells, (cell) => cell.usage_report_rows);
  if (reported === undefined || billed === undefined || cells.length === 0) return '';
  const ratio = multipleText(billed, reported);
  const where = rows.length === 0 ? '' : ` in ${pagesOf(rows)}`;
  return `${provider}’s own usage report${where} counts ${unitsText(reported, unit)}${ratio === '' ? '' : `. The bill charges ${ratio} as many`}.`;
}

/** `twice`, `3 times`, `1.25 times`; empty for as many, or where there is nothing to compare with. */
function multipleText(of: bigint, by: bigint): string {
  if (by <= 0n || of === by) return '';
  if (of === 2n * by) return 'exactly twice';
  if (of % by === 0n) return `exactly ${of / by} times`;
  const thousandths = (of * 1_000n + by / 2n) / by;
  return thousandths === 1_000n ? '' : `${Number(thousandths) / 1_000} times`;
}

function callsText({ dispute, evidence, cells, unit }: Disputed): string {
  const days = new Set(dispute.days.map(({ day }) => day));
  const matches = evidence.matches.filter(({ day, model }) => model === dispute.model && days.has(day));
  const calls = matches.reduce((sum, { event_count }) => sum + (event_count ?? 0), 0);
  const name = evidence.claim.organization.name;
  const when = days.size === 1 ? 'that day' : 'these days';
  if (calls === 0) return `${name} recorded no call of this model on ${when}.`;
  const observed = sumOf(cells, (cell) => cell.observed_quantity);
  const counts = `${name} recorded ${counted(calls, 'call')} on ${when}.`;
  if (observed === undefined) return counts;
  const usage = `On the disputed lines their usage adds up to ${unitsText(observed, unit)}`;
  const right = sumOf(cells, (cell) => cell.right_quantity);
  if (right === undefined || right === 0n) return `${counts} ${usage}.`;
  const isBilled = cells.every((cell) => cell.right_quantity === cell.billed_quantity);
  const number = isBilled ? 'number charged' : 'right number';
  const share =
    observed === right ? `exactly the ${number}` : `${percentText(observed, right)} of the ${number}`;
  return `${counts} ${usage}, ${share}.`;
}

/** A share to a hundredth of a percent, cut. */
const percentText = (part: bigint, whole: bigint): string =>
  `${(Number((part * 10_000n) / whole) / 100).toFixed(2)} %`;

function ratesText({ cells, evidence }: Disputed): string {
  const computed = cells.filter(({ basis }) => basis === 'rates');
  if (computed.length === 0) return '';
  const rates = ratesOf(computed, evidence);
  const isContract = rates.length > 0 && rates.every(isAgreed);
  const name = isContract ? 'agreed rate' : rates.some(isAgreed) ? 'rate' : 'list rate';
  const lines = onLines(computed.length);
  if (computed.every((cell) => !/[1-9]/.test(cell.rate_usd_exact)))
    return `The rates are not disputed: ${lines} the charge is units × ${name}.`;
  const percents = new Set(rates.map((rate) => rate.contract_discount_percent ?? null));
  const [percent] = percents;
  if (isContract && percents.size === 1 && percent && computed.every((cell) => isAtList(cell, evidence)))
    return `${lines.replace(/^on/, 'On')} the charge is units × list rate, without the ${percent} % that the contract takes off.`;
  const right = sumOf(computed, (cell) => atRight(cell));
  const billed = sumOf(computed, (cell) => cell.billed_usd_exact);
  const ratios = new Set(
    computed.map((cell) => multipleText(pico(cell.billed_usd_exact), pico(atRight(cell)))),
  );
  const [ratio = ''] = ratios;
  if (ratios.size === 1 && ratio !== '')
    return `${lines.replace(/^on/, 'On')} the charge is ${ratio.replace('exactly twice', 'exactly 2 times')} units × ${name}.`;
  const all = right === undefined || billed === undefined ? '' : multipleText(billed, right);
  return all === '' ? '' : `Together the lines charge ${all} units × ${name}.`;
}

const onLines = (count: number): string => (count === 1 ? 'on the line' : `on all ${count} lines`);

/** Units as charged at the right rate. */
const atRight = (cell: EvidenceCell): string =>
  decimal(pico(cell.billed_usd_exact) - pico(cell.rate_usd_exact));

function decimal(value: bigint): string {
  const digits = (value < 0n ? -value : value).toString().padStart(13, '0');
  return `${value < 0n ? '-' : ''}${digits.slice(0, -12)}.${digits.slice(-12)}`;
}

/** Whether the charge is units × list rate, to a hundredth of a cent. */
function isAtList(cell: EvidenceCell, { pricing_snapshot }: ClaimEvidence): boolean {
  const rates = new Map(
    pricing_snapshot.rates.map((rate) => [rate.id, rate.list_usd_per_mtok_exact ?? null]),
  );
  let list = 0n;
  for (const { quantity, rate } of cell.parts) {
    const of = rates.get(rate) ?? null;
    if (of === null) return false;
    list += (pico(quantity) * pico(of)) / (WHOLE * 1_000_000n);
  }
  const off = list - pico(cell.billed_usd_exact);
  return (off < 0n ? -off : off) < 100_000_000n;
}

function linesText({ dispute, cells }: Disputed): string {
  const computed = cells.filter(({ basis }) => basis === 'rates').length;
  const amount = exactDollars(dispute.difference_usd_exact);
  if (computed === 0) return `The ${counted(cells.length, 'line')} below add up to ${amount}.`;
  const which =
    computed === cells.length
      ? `All ${counted(cells.length, 'line')}`
      : `${computed} of ${cells.length} lines`;
  const one = cells.length === 1 ? 'The line below follows' : `${which} below follow`;
  return `${one} from units × rate to the last digit; the difference is ${amount}.`;
}
