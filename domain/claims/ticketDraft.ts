import { timesOfBillingDay } from '../billing/billingDay.js';
import { publicId } from '../ids.js';
import { decimalFromPico, decimalFromScaled, type Pico, parseScaled, picoFromDecimal } from '../money.js';
import { isoFromMicros, shiftDay } from '../period.js';
import { isProvider, PROVIDER_FACTS } from '../providers.js';
import { inOrder } from './draft.js';
import type { ClaimEvidence, EvidenceCell, EvidenceRate, EvidenceSample } from './evidence/claimEvidence.js';
import { takeInTurns } from './evidence/documentTexts.js';
import { dollarsText } from './financialSummary.js';
import type { ClaimStatus } from './lifecycle.js';

/** The text of an escalated claim for the provider’s support (docs/claims.md, “Ticket draft”). */

export interface TicketFacts {
  claim: {
    id: string;
    provider: string;
    accountId: string;
    periodStart: string;
    periodEnd: string;
    recoverableCents: number;
    externalTicketId: string | null;
    evidenceStaleAtMicros: bigint | null;
  };
  organization: string;
  /** In chronological order. */
  events: readonly {
    to: ClaimStatus;
    atMicros: bigint;
    fields: {
      denialReason: string | null;
      creditIssuedCents: number | null;
      externalTicketId: string | null;
    };
  }[];
  disputes: readonly {
    id: string;
    model: string;
    periodStart: string;
    periodEnd: string;
    amountCents: number;
    reason: string;
    /** Hours by which the run that found it estimated the provider’s clock to be ahead of UTC; 0: at UTC, or Google’s. */
    clockHours: number;
  }[];
  /** Credits on later bills that may be a part of the answer. */
  credits: readonly { cents: number; rows: readonly { day: string; description: string }[] }[];
  /** Undefined: it has the form of another version. */
  evidence: ClaimEvidence | undefined;
  rows: readonly LabelledRow[];
}

export interface TicketDraft {
  subject: string;
  body: string;
  suggestedResolution: string;
}

/** Maximum projects in a ticket; the attached CSV has the lines of all. */
const PROJECTS_MAX = 20;

/** Each move in words for readers of the correspondence. */
const MOVES: Readonly<Record<ClaimStatus, string>> = {
  draft: 'claim prepared',
  submitted_to_provider: 'claim sent to you',
  provider_acknowledged: 'you confirmed that you have it',
  under_review: 'you said that it is being looked into',
  credit_approved: 'you approved a credit',
  credit_issued: 'credited',
  denied: 'refused',
  partial: 'credited in part',
  escalated: 'escalated',
};

export function draftTicket(facts: TicketFacts): TicketDraft {
  const { claim, evidence } = facts;
  const name = providerName(claim.provider);
  const period = periodText(claim);
  const amount = dollarsText(BigInt(claim.recoverableCents));
  const account = claim.accountId === '' ? '' : ` of account ${claim.accountId}`;
  const ticket = claim.externalTicketId === null ? '' : `, ticket ${claim.externalTicketId}`;
  const suggestedResolution = `Issue a credit of ${amount} for ${period}.`;
  const sections: [string, string[]][] = [
    ['Account and bill', accountLines(facts, name)],
    ['What was charged and what we expected', evidence ? meterParagraphs(evidence, facts.rows) : []],
    ['What it comes to', totalLines(facts)],
    ['Requests that you can look up', evidence ? sampleLines(evidence.samples) : []],
    ['Correspondence so far', correspondence(facts)],
    ['What we ask for', [suggestedResolution, ...remedyLines(facts)]],
    ['Attached', attachedLines(publicId('clm', claim.id))],
  ];
  return {
    subject: `Escalation: overcharge of ${amount} on the ${name} bill${account}, ${period}${ticket}`,
    body: [
      'Hello,',
      opening(facts, name, period, amount),
      ...sections.flatMap(([title, lines]) =>
        lines.length === 0 ? [] : [`${title.toUpperCase()}\n${lines.join('\n')}`],
      ),
      `Thank you,\n${facts.organization}`,
    ].join('\n\n'),
    suggestedResolution,
  };
}

const factsOf = (slug: string) => PROVIDER_FACTS.find((facts) => facts.slug === slug);
const providerName = (slug: string): string => factsOf(slug)?.displayName ?? slug;

const periodText = ({ periodStart, periodEnd }: { periodStart: string; periodEnd: string }): string =>
  periodStart === periodEnd ? periodStart : `${periodStart} to ${periodEnd}`;

function opening({ claim }: TicketFacts, name: string, period: string, amount: string): string {
  const ticket =
    claim.externalTicketId === null
      ? 'Please open a ticket for this'
      : `This is about ticket ${claim.externalTicketId}. Please pass it on to somebody who can correct the bill`;
  return `${ticket}: the ${name} bill for ${period} charges ${amount} more than the rates and the usage below give. The evidence is attached; each of its lines names the page of your own report that it was read from.`;
}

function accountLines(
  { claim, organization, disputes, evidence, rows }: TicketFacts,
  name: string,
): string[] {
  const invoices = evidence?.invoice_refs ?? [];
  const named = [...new Set(invoices.flatMap(({ invoice_id }) => invoice_id ?? []))];
  const projects = [...new Set(rows.flatMap(({ project }) => project ?? []))].sort();
  return [
    `Organization: ${organization}`,
    `${name} account: ${claim.accountId === '' ? 'all accounts of the organization' : claim.accountId}`,
    ...(named.length > 0 ? [`Invoices: ${named.join(', ')}`] : []),
    ...invoices.slice(0, 10).map((one) => {
      const span = one.period_start === null ? '' : `, ${one.period_start} to ${one.period_end}`;
      return `Billing data: ${one.filename ?? `your API, ${one.source_id}`}${span}, received ${one.fetched_at.slice(0, 10)}`;
    }),
    ...(projects.length > 0
      ? [
          `${factsOf(claim.provider)?.projectsName ?? 'Projects'} on these lines: ${projects.slice(0, PROJECTS_MAX).join(', ')}`,
        ]
      : []),
    ...timeLines(claim, disputes[0]?.clockHours ?? 0),
    `Our reference: ${publicId('clm', claim.id)}`,
  ];
}

/** The period in days of the bill and in UTC. A clock that is estimated is named as such: the provider knows its own. */
function timeLines({ provider, periodStart, periodEnd }: TicketFacts['claim'], clockHours: number): string[] {
  const times = (day: string) =>
    timesOfBillingDay(isProvider(provider) ? provider : 'unknown', day, clockHours);
  const [start, end] = [times(periodStart).startMicros, times(periodEnd).endMicros];
  const ahead = clockHours > 0 ? `UTC+${clockHours}` : `UTC-${-clockHours}`;
  const estimated = clockHours === 0 ? 'UTC' : `${ahead} as estimated from your bill and our calls`;
  const zone = provider === 'google' ? 'Pacific Time (America/Los_Angeles)' : estimated;
  return [
    `Period by the days of the bill, ${zone}: ${periodStart} 00:00 up to ${shiftDay(periodEnd, 1)} 00:00`,
    `Period in UTC: ${isoFromMicros(start)} up to ${isoFromMicros(end)}`,
  ];
}

function totalLines({ claim, evidence, disputes }: TicketFacts): string[] {
  const reasons = disputes.map(
    (one) => `- ${one.model}, ${periodText(one)}, ${dollarsText(BigInt(one.amountCents))}: ${one.reason}`,
  );
  const asked = `Asked for: ${dollarsText(BigInt(claim.recoverableCents))} (rounded down to the cent)`;
  if (!evidence) return [...reasons, asked];
  const { totals } = evidence;
  return [
    ...reasons,
    `Charged: ${usd(totals.billed_usd_exact)}`,
    `Expected: ${usd(totals.expected_usd_exact)}`,
    `Difference: ${usd(totals.disputed_usd_exact)}`,
    ...(/[1-9]/.test(totals.netted_usd_exact)
      ? [`Less what was charged too little in the same months: ${usd(totals.netted_usd_exact)}`]
      : []),
    asked,
    ...evidence.notes,
  ];
}

function correspondence({ events, claim }: TicketFacts): string[] {
  const moves = events
    .filter(({ to }) => to !== 'draft')
    .map(({ to, atMicros, fields }) => {
      const said = [
        ...(fields.externalTicketId === null ? [] : [`ticket ${fields.externalTicketId}`]),
        ...(fields.creditIssuedCents === null
          ? []
          : [`credit of ${dollarsText(BigInt(fields.creditIssuedCents))}`]),
        ...(fields.denialReason === null ? [] : [`your answer: "${fields.denialReason}"`]),
      ];
      return `- ${isoFromMicros(atMicros).slice(0, 10)}: ${[MOVES[to], ...said].join('; ')}`;
    });
  return [`Ticket: ${claim.externalTicketId ?? 'we were given no number'}`, ...moves];
}

function remedyLines({ claim, credits }: TicketFacts): string[] {
  return [
    'If you come to another amount, please send the quantity and the rate of each line that differs.',
    ...credits.map(
      ({ cents, rows }) =>
        `A credit of ${dollarsText(BigInt(cents))} (${[...new Set(rows.map(({ day, description }) => `${day}, "${description}"`))].join('; ')}) is on a later bill; please say whether it is for this claim.`,
    ),
    ...(claim.evidenceStaleAtMicros === null
      ? []
      : [
          `You have billed some of these days otherwise since ${isoFromMicros(claim.evidenceStaleAtMicros).slice(0, 10)}; the amounts above are as they were when the claim was sent.`,
        ]),
  ];
}

/** The evidence files with their download names. */
const attachedLines = (claimId: string): string[] => [
  `- ${claimId}-evidence.pdf: the claim with its lines, rates and calls`,
  `- ${claimId}-evidence.csv: the lines as a table`,
  `- ${claimId}-evidence.tar.gz: all of it, with the pages of your reports`,
];

/** The lines of a ticket draft: billed and expected amounts by meter, and the calls that prove them. */

/** A present row of the bill with its verbatim label. */
export interface LabelledRow {
  day: string;
  model: string | null;
  lineItem: string;
  tokenClass: string;
  isBatch: boolean | null;
  longContext: boolean | null;
  region: string | null;
  project: string | null;
}

/** Maximum meters in a ticket; the attached CSV has all of them. */
const METERS_MAX = 40;
const LABELS_MAX = 5;
/** Maximum calls in a ticket, or one of each model if there are more models, for the support's own logs. */
const SAMPLES_MAX = 25;
const USAGE_CHARS_MAX = 300;

/** Amounts with at least two decimals. */
export function usd(exact: string): string {
  const isNegative = exact.startsWith('-');
  const [whole = '0', fraction = ''] = (isNegative ? exact.slice(1) : exact).split('.');
  return `${isNegative ? '-' : ''}$${grouped(whole)}.${fraction.padEnd(2, '0')}`;
}

const grouped = (digits: string): string => digits.replace(/\B(?=(\d{3})+$)/g, ',');

function quantityText(exact: string): string {
  const [whole = '0', fraction] = exact.split('.');
  return fraction === undefined || /^0*$/.test(fraction) ? grouped(whole) : `${grouped(whole)}.${fraction}`;
}

interface Meter {
  cells: EvidenceCell[];
  billedPico: Pico;
  expectedPico: Pico;
}

/** The billed charges, a paragraph for each meter and rate, largest difference first. */
function meterParagraphs(evidence: ClaimEvidence, rows: readonly LabelledRow[]): string[] {
  const meters = [...metersOf(evidence.cells).values()].sort((a, b) => {
    const [of, other] = [differenceOf(a), differenceOf(b)];
    return of === other ? inOrder([nameOf(a)], [nameOf(b)]) : of > other ? -1 : 1;
  });
  const shown = meters.slice(0, METERS_MAX).map((meter, at) => paragraphOf(at + 1, meter, evidence, rows));
  const left = meters.length - shown.length;
  return left > 0 ? [...shown, `${left} more are in the attached CSV.`] : shown;
}

const differenceOf = ({ billedPico, expectedPico }: Meter): Pico => billedPico - expectedPico;
const nameOf = ({ cells: [first] }: Meter): string => (first ? keyOf(first) : '');
const keyOf = (cell: EvidenceCell): string =>
  JSON.stringify([
    ...[cell.model, cell.token_class, cell.service_tier, cell.is_batch, cell.long_context, cell.region],
    ...[cell.billed_rate_usd, cell.expected_rate_usd],
  ]);

function metersOf(cells: readonly EvidenceCell[]): Map<string, Meter> {
  const meters = new Map<string, Meter>();
  for (const cell of cells) {
    const known = meters.get(keyOf(cell)) ?? { cells: [], billedPico: 0n, expectedPico: 0n };
    known.cells.push(cell);
    known.billedPico += picoOf(cell.billed_usd_exact);
    known.expectedPico += picoOf(cell.expected_usd_exact);
    meters.set(keyOf(cell), known);
  }
  return meters;
}

const picoOf = (exact: string): Pico => picoFromDecimal(exact) ?? 0n;

function paragraphOf(
  number: number,
  meter: Meter,
  evidence: ClaimEvidence,
  rows: readonly LabelledRow[],
): string {
  const [first] = meter.cells;
  if (!first) return '';
  const days = meter.cells.map(({ day }) => day).sort();
  const [from = '', to = ''] = [days[0], days.at(-1)];
  const quantities = meter.cells.map(({ billed_quantity }) => billed_quantity);
  const quantity = quantities.some((one) => one === null)
    ? null
    : decimalFromPico(quantities.reduce((sum, one) => sum + picoOf(one ?? '0'), 0n));
  const labels = labelsOf(meter, rows);
  const unit = unitOf(first);
  const rates = ratesOf(meter, evidence);
  const isMixed = rates.length > 1;
  return [
    `${number}. ${meterText(first)}, ${from === to ? from : `${from} to ${to} (${new Set(days).size} days)`}`,
    ...(labels.length > 0
      ? [`   Line item as billed: ${labels.map((label) => `"${label}"`).join(', ')}`]
      : []),
    `   Quantity billed: ${quantity === null ? 'not on the bill' : `${quantityText(quantity)} ${unit}`}`,
    `   Unit price charged: ${first.billed_rate_usd === null ? 'not on the bill' : `${rateText(first.billed_rate_usd, unit)}${isMixed ? ' on average' : ''}`}`,
    `   Amount charged: ${usd(decimalFromPico(meter.billedPico))}`,
    `   Expected: ${expectedText(first, meter, { unit, isMixed })}`,
    `   Difference: ${usd(decimalFromPico(differenceOf(meter)))}`,
    ...rates.map((rate) => `   ${sourceText(rate, evidence, { unit, isMixed })}`),
  ].join('\n');
}

const unitOf = ({ token_class }: { token_class: string }): string =>
  token_class === 'requests' ? 'requests' : token_class === 'other' ? 'units' : 'tokens';

function meterText(cell: EvidenceCell): string {
  return [
    cell.model,
    cell.token_class === 'all' ? 'whole day' : cell.token_class.replaceAll('_', ' '),
    ...(cell.service_tier === 'standard' || cell.service_tier === '' ? [] : [cell.service_tier]),
    ...(cell.is_batch ? ['batch'] : []),
    ...(cell.long_context ? ['long context'] : []),
    ...(cell.region === null ? [] : [cell.region]),
  ].join(', ');
}

const RATE_DIGITS = 6;

/** A rate in a ticket: two to six decimals, since a charged rate is a quotient. */
function rateText(rate: number, unit: string): string {
  const rounded = decimalFromScaled(parseScaled(String(rate), RATE_DIGITS) ?? 0n, RATE_DIGITS);
  return `${usd(rounded)} per million ${unit}`;
}

/** The notation of a meter's rates; `isMixed`: several apply to parts of its quantity. */
interface RateStyle {
  unit: string;
  isMixed: boolean;
}

function expectedText(
  first: EvidenceCell,
  { cells, expectedPico }: Meter,
  { unit, isMixed }: RateStyle,
): string {
  const right = cells.map(({ right_quantity }) => right_quantity);
  const isOther = cells.some((cell) => cell.right_quantity !== cell.billed_quantity);
  const quantity =
    isOther && right.every((one) => one !== null)
      ? `${quantityText(decimalFromPico(right.reduce((sum, one) => sum + picoOf(one ?? '0'), 0n)))} ${unit} at `
      : '';
  const amount = usd(decimalFromPico(expectedPico));
  if (first.expected_rate_usd !== null)
    return `${quantity}${rateText(first.expected_rate_usd, unit)} = ${amount}`;
  return isMixed ? `${quantity}the rates below = ${amount}` : amount;
}

/** The provider's labels of the rows in the meter's cells. */
function labelsOf({ cells }: Meter, rows: readonly LabelledRow[]): string[] {
  const days = new Set(cells.map(({ day }) => day));
  const [first] = cells;
  const found = rows.filter(
    (row) =>
      days.has(row.day) &&
      row.tokenClass === first?.token_class &&
      row.isBatch === first.is_batch &&
      row.longContext === first.long_context &&
      row.region === first.region &&
      (row.model === null || row.model === first.model || row.model.startsWith(`${first.model}-`)),
  );
  return [...new Set(found.map(({ lineItem }) => lineItem))].sort().slice(0, LABELS_MAX);
}

function ratesOf({ cells }: Meter, { pricing_snapshot }: ClaimEvidence): EvidenceRate[] {
  const ids = new Set(cells.flatMap(({ parts }) => parts.map(({ rate }) => rate)));
  return pricing_snapshot.rates.filter(({ id }) => ids.has(id));
}

/** A rate with its source; with several rates, the part to which each applies. */
function sourceText(
  rate: EvidenceRate,
  { pricing_snapshot }: ClaimEvidence,
  { unit, isMixed }: RateStyle,
): string {
  const of = isMixed ? ` for ${circumstancesOf(rate)}` : '';
  const price = rateText(rate.usd_per_mtok, unit);
  if (rate.contract) {
    const { document, clause, url } = rate.contract;
    return `Agreed rate${of}: ${price}, ${[document, clause === null ? null : `clause ${clause}`, url].filter(Boolean).join(', ')}`;
  }
  const named = pricing_snapshot.sources.filter(({ key }) => rate.source_keys.includes(key));
  const sources = [rate.price_page_url, ...named.map(({ name, url }) => url ?? name)].filter(Boolean);
  const read = rate.retrieved_on === null ? '' : `, read on ${rate.retrieved_on}`;
  const from = rate.effective_from === null ? '' : `, in force since ${rate.effective_from}`;
  return `${rate.kind === 'list' ? 'Published rate' : 'Rate'}${of}: ${price}${from}${read}${sources.length > 0 ? ` (${[...new Set(sources)].join(', ')})` : ''}`;
}

const circumstancesOf = (rate: EvidenceRate): string =>
  [
    `the ${rate.service_tier || 'standard'} tier`,
    ...(rate.is_batch ? ['batch'] : []),
    ...(rate.long_context ? ['long context'] : []),
    ...(rate.region === null ? [] : [rate.region]),
  ].join(', ');

/** Calls of every disputed model with the usage that the client received; those with a request id come first. */
function sampleLines(samples: readonly EvidenceSample[]): string[] {
  const models = [...new Set(samples.map(({ model }) => model))];
  const groups = models.map((model) => {
    const calls = samples.filter((sample) => sample.model === model);
    const named = calls.filter(({ request_id }) => request_id !== null);
    return named.length > 0 ? named : calls;
  });
  return takeInTurns(groups, Math.max(SAMPLES_MAX, models.length)).map((sample) => {
    const usage = JSON.stringify(sample.usage);
    const shown =
      usage.length > USAGE_CHARS_MAX ? `${usage.slice(0, USAGE_CHARS_MAX)}… (whole in the evidence)` : usage;
    return `- ${sample.request_id ?? '(no request id was kept)'}  ${sample.end_at}  ${sample.response_model ?? sample.model}  ${sample.status}  usage ${shown}`;
  });
}
