import { picoFromDecimal } from '../../money.js';
import type {
  ClaimEvidence,
  EvidenceCell,
  EvidenceDispute,
  EvidenceRate,
  EvidenceRow,
} from './claimEvidence.js';
import {
  alignedRates,
  counted,
  dayText,
  exactDollars,
  grouped,
  listed,
  shortened,
  spanText,
  unitOf,
  words,
} from './documentTexts.js';

/** The rates of a claim in its document, their sources, and the rates that were charged instead. */

export interface DocumentTable {
  columns: readonly DocumentColumn[];
  rows: readonly (readonly string[])[];
  total?: readonly string[];
}

export interface DocumentColumn {
  name: string;
  kind: 'text' | 'number' | 'code';
}

export const textColumn = (name: string): DocumentColumn => ({ name, kind: 'text' });
export const numberColumn = (name: string): DocumentColumn => ({ name, kind: 'number' });

const CLASSES: Readonly<Record<string, string>> = {
  all: 'Whole day',
  cache_write_5m: 'Cache write, 5 min',
  cache_write_1h: 'Cache write, 1 h',
  input_audio: 'Audio input',
  output_audio: 'Audio output',
};

export const className = (tokenClass: string): string => CLASSES[tokenClass] ?? words(tokenClass);

interface Circumstances {
  service_tier: string;
  is_batch: boolean | null;
  long_context: boolean | null;
  region: string | null;
}

const circumstanceTexts = (of: Circumstances): string[] => [
  ...(of.service_tier === 'standard' || of.service_tier === '' ? [] : [of.service_tier]),
  ...(of.is_batch ? ['batch'] : []),
  ...(of.long_context ? ['long context'] : []),
  ...(of.region === null ? [] : [of.region]),
];

/** A class with its circumstances: `Cache read, batch`. */
export const meterText = (of: Circumstances & { token_class: string }): string =>
  [className(of.token_class), ...circumstanceTexts(of)].join(', ');

export const isAgreed = ({ kind }: EvidenceRate): boolean => kind === 'contract';

/** The heading of a column of right rates: agreed rates come from a contract, all others are list rates. */
export function rightRateName(rates: readonly EvidenceRate[]): string {
  if (rates.length > 0 && rates.every(isAgreed)) return 'Agreed rate';
  return rates.some(isAgreed) ? 'List or agreed rate' : 'List rate';
}

export function ratesOf(cells: readonly EvidenceCell[], { pricing_snapshot }: ClaimEvidence): EvidenceRate[] {
  const ids = new Set(cells.flatMap(({ parts }) => parts.map(({ rate }) => rate)));
  return pricing_snapshot.rates.filter(({ id }) => ids.has(id));
}

/** `Order form DL-2026-017, clause 3.2`. */
const contractName = ({ document, clause }: NonNullable<EvidenceRate['contract']>): string =>
  clause === null ? document : `${document}, clause ${clause}`;

/** The contracts of agreed rates, each in a sentence with its percentage and first day. */
export function contractTexts({ pricing_snapshot }: ClaimEvidence, provider: string): string[] {
  const texts = new Map<string, string | null>();
  for (const rate of pricing_snapshot.rates) {
    if (!isAgreed(rate)) continue;
    const percent = rate.contract_discount_percent ?? null;
    const terms = percent === null ? 'rates as agreed' : `${percent} % off ${provider}’s list prices`;
    const name = rate.contract ? `${contractName(rate.contract)}: ${terms}` : terms;
    const known = texts.get(name);
    const first = rate.effective_from;
    texts.set(
      name,
      known === undefined || (first !== null && known !== null && first < known) ? first : known,
    );
  }
  return [...texts].map(([name, first]) => (first === null ? name : `${name}, since ${dayText(first)}`));
}

/** Maximum columns of classes in one table of rates. */
const CLASSES_MAX = 5;

/** One row for each model and circumstance, one column for each class; list rates are above agreed ones. */
export function rateTables({ pricing_snapshot }: ClaimEvidence): DocumentTable[] {
  const { rates } = pricing_snapshot;
  const classes = [...new Set(rates.map(({ token_class }) => token_class))].sort(
    (a, b) => orderOfClass(a) - orderOfClass(b),
  );
  const tables = Math.ceil(classes.length / CLASSES_MAX);
  const size = Math.ceil(classes.length / Math.max(tables, 1));
  return Array.from({ length: tables }, (_, at) => {
    const shown = classes.slice(at * size, (at + 1) * size);
    const of = rates.filter(({ token_class }) => shown.includes(token_class));
    return {
      columns: [
        ...['Model', 'Requests', 'Rate'].map(textColumn),
        ...shown.map((name) => numberColumn(className(name))),
        textColumn('In force'),
      ],
      rows: rateRows(of, shown),
    };
  });
}

const CLASS_ORDER = ['input', 'cache_read', 'cache_write_5m', 'cache_write_1h', 'output'];
const orderOfClass = (name: string): number => {
  const at = CLASS_ORDER.indexOf(name);
  return at < 0 ? CLASS_ORDER.length : at;
};

interface RateRow {
  head: string[];
  rates: Map<string, number>;
  inForce: string;
}

function rateRows(rates: readonly EvidenceRate[], classes: readonly string[]): string[][] {
  const rows = new Map<string, RateRow>();
  const put = (rate: EvidenceRate, basis: string, value: string) => {
    const requests = words(circumstanceTexts(rate).join(', ') || 'standard');
    const head = [rate.model, requests, basis];
    const key = JSON.stringify([...head, inForceText(rate)]);
    const row = rows.get(key) ?? { head, rates: new Map<string, number>(), inForce: inForceText(rate) };
    row.rates.set(rate.token_class, Number(value));
    rows.set(key, row);
  };
  for (const rate of rates) {
    const list = rate.list_usd_per_mtok_exact ?? null;
    if (list !== null) put(rate, 'List', list);
    put(rate, basisText(rate), rate.usd_per_mtok_exact);
  }
  const list = [...rows.values()];
  const columns = classes.map((name) => alignedRates(list.map((row) => row.rates.get(name) ?? null)));
  return list.map(({ head, inForce }, at) => [
    ...head,
    ...columns.map((column) => column[at] ?? ''),
    inForce,
  ]);
}

function basisText(rate: EvidenceRate): string {
  if (!isAgreed(rate)) return 'List';
  const percent = rate.contract_discount_percent ?? null;
  return percent === null ? 'Agreed' : `Agreed, −${percent} %`;
}

function inForceText({ effective_from, effective_to }: EvidenceRate): string {
  const from = effective_from === null ? '' : `from ${dayText(effective_from)}`;
  const to = effective_to === null ? '' : `until before ${dayText(effective_to)}`;
  return [from, to].filter(Boolean).join(' ') || 'all days';
}

/** The sources of the rates: a sentence for each kind of source and its models, with the address. */
export function rateSources(evidence: ClaimEvidence, provider: string): { text: string; url: string }[] {
  const { rates, sources } = evidence.pricing_snapshot;
  const named = new Map(sources.map(({ key, name }) => [key, name]));
  const models = new Map<string, Set<string>>();
  for (const rate of rates) {
    const text = sourceText(rate, named);
    models.set(text, (models.get(text) ?? new Set()).add(rate.model));
  }
  const isOne = models.size === 1;
  const contracts = rates.flatMap((rate) => (rate.contract?.url ? [rate.contract] : []));
  const pages = [...new Set(rates.flatMap((rate) => rate.price_page_url ?? []))];
  return [
    ...[...models].map(([text, of]) => ({ text: isOne ? text : `${listed([...of])}: ${text}`, url: '' })),
    ...pages.map((url) => ({ text: `${provider}’s own price page, to compare`, url })),
    ...uniqueBy(contracts, contractName).map((one) => ({ text: contractName(one), url: one.url ?? '' })),
    ...sources.flatMap(({ name, url, key }) =>
      url === null || key === 'contract' ? [] : [{ text: name, url }],
    ),
  ];
}

function uniqueBy<T>(list: readonly T[], keyOf: (one: T) => string): T[] {
  return [...new Map(list.map((one) => [keyOf(one), one])).values()];
}

function sourceText(rate: EvidenceRate, named: ReadonlyMap<string, string>): string {
  const discount =
    rate.untold_discount_percent === null
      ? ''
      : `, less ${rate.untold_discount_percent} % as charged on the days before and after`;
  if (isAgreed(rate))
    return `Agreed in ${rate.contract ? contractName(rate.contract) : 'a contract'}${discount}.`;
  if (rate.kind === 'override') return `List rates as the organization has recorded them${discount}.`;
  const names = rate.source_keys.map((key) => named.get(key) ?? key);
  const alike = rate.agreement === 'agree' && names.length > 1 ? ', which agree' : '';
  const read = rate.retrieved_on === null ? '' : `, read on ${dayText(rate.retrieved_on)}`;
  return `List rates by ${listed(names)}${alike}${read}${discount}.`;
}

/** Maximum rates shown side by side, and below maximum characters of a model's name. */
const CHANGES_MAX = 6;
const MODEL_CHARS = 32;

/** Charged beside right rates, largest differences first; undefined: no rate is disputed. */
export function rateChanges(
  evidence: ClaimEvidence,
  rowsMax: number,
): { table: DocumentTable; more: number } | undefined {
  const cells = evidence.cells.filter(
    (cell) =>
      /[1-9]/.test(cell.rate_usd_exact) && cell.billed_rate_usd !== null && cell.expected_rate_usd !== null,
  );
  const rates = ratesOf(cells, evidence);
  const byId = new Map(rates.map((rate) => [rate.id, rate]));
  const changes = new Map<
    string,
    { cell: EvidenceCell; since: string | null; charged: number[]; sum: bigint }
  >();
  for (const cell of cells) {
    const since = byId.get(cell.parts[0]?.rate ?? '')?.effective_from ?? null;
    const key = JSON.stringify([cell.model, meterText(cell), cell.expected_rate_usd, since]);
    const change = changes.get(key) ?? { cell, since, charged: [], sum: 0n };
    change.charged.push(cell.billed_rate_usd ?? 0);
    change.sum += pico(cell.rate_usd_exact);
    changes.set(key, change);
  }
  if (changes.size === 0) return undefined;
  const sorted = [...changes.values()].sort((a, b) => (a.sum === b.sum ? 0 : a.sum > b.sum ? -1 : 1));
  const shown = sorted.slice(0, Math.min(CHANGES_MAX, Math.max(rowsMax, 1)));
  const hasDates = shown.some(({ since }) => since !== null);
  const isOneModel = new Set(evidence.disputes.map(({ model }) => model)).size === 1;
  const columns = [
    ...(isOneModel ? ['Class'] : ['Model', 'Class']).map(textColumn),
    ...['Rate charged', rightRateName(rates)].map(numberColumn),
    ...(hasDates ? [textColumn('In force since')] : []),
  ];
  const charged = alignedRates(shown.flatMap((one) => [Math.min(...one.charged), Math.max(...one.charged)]));
  const right = alignedRates(shown.map(({ cell }) => cell.expected_rate_usd));
  const rows = shown.map(({ cell, since }, at) => [
    ...(isOneModel ? [] : [shortened(cell.model, MODEL_CHARS)]),
    meterText(cell),
    spanOf(charged[at * 2] ?? '', charged[at * 2 + 1] ?? ''),
    right[at] ?? '',
    ...(hasDates ? [since === null ? '–' : dayText(since)] : []),
  ]);
  return { table: { columns, rows }, more: sorted.length - shown.length };
}

/** One rate, or the range of charged rates. */
const spanOf = (low: string, high: string): string => (low === high ? low : `${low} – ${high}`);

/** The support of each finding in a claim's document, in words and figures that the provider can verify. */

export interface Support {
  title: string;
  subtitle: string;
  points: { name: string; text: string }[];
}

/** Maximum findings with support; the lines show all findings. */
export const SUPPORTED_MAX = 12;

export const cellsOf = (dispute: EvidenceDispute, { cells }: ClaimEvidence): EvidenceCell[] =>
  cells.filter((cell) => cell.dispute_id === dispute.dispute_id);

/** Charged units and units in the provider's usage report; undefined: the report does not count all lines. */
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

/** Undefined: a cell has no value. */
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

/** Unique rows, since lines may share rows. */
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

/** `twice`, `3 times`, `1.25 times`; '': equal, or nothing to compare with. */
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

/** A share in percent, cut to two decimals. */
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

/** The charged units at the right rate. */
const atRight = (cell: EvidenceCell): string =>
  decimal(pico(cell.billed_usd_exact) - pico(cell.rate_usd_exact));

function decimal(value: bigint): string {
  const digits = (value < 0n ? -value : value).toString().padStart(13, '0');
  return `${value < 0n ? '-' : ''}${digits.slice(0, -12)}.${digits.slice(-12)}`;
}

/** Whether the charge equals units × list rate, within a hundredth of a cent. */
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
