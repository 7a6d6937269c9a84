import { decimalFromPico, type Pico, picoFromDecimal, usdNumberFromPico } from '../../money.js';
import { claimCents, dollarsText } from '../financialSummary.js';
import { withUsageReportParts } from './claimCsv.js';
import type { ClaimEvidence, EvidenceDispute } from './claimEvidence.js';
import {
  cellsOf,
  contractTexts,
  type DocumentTable,
  numberColumn,
  rateChanges,
  rateSources,
  rateTables,
  reportCount,
  SUPPORTED_MAX,
  type Support,
  supportOf,
  textColumn,
} from './documentRates.js';
import { groupOf, type LineGroup, underchargesOf, type WorkedLine, workedLine } from './documentTables.js';
import {
  aligned,
  billZone,
  counted,
  dayText,
  faultText,
  grouped,
  listed,
  providerName,
  shortened,
  spanText,
  takeInTurns,
  timeText,
  words,
} from './documentTexts.js';

/** The text of a claim's document with all amounts formatted, so that the template does no arithmetic. */

interface ClaimDocument extends Summary {
  title: string;
  organization: string;
  provider: string;
  /** The footer of every page. */
  footer: string;
  period: string;
  generatedOn: string;
  support: readonly Support[];
  /** Number of findings whose support is left out. */
  moreSupport: number;
  /** Values of the chart, for drawing only; empty for a single day. */
  chartDays: { label: string; billed: number; expected: number }[];
  chartText: string;
  byDay: DocumentTable;
  groups: readonly LineGroup[];
  undercharges: DocumentTable | null;
  rates: readonly DocumentTable[];
  rateSources: readonly { text: string; url: string }[];
  examples: readonly WorkedLine[];
  samples: DocumentTable;
  samplesNote: string;
  pages: { file: string; from: string; received: string; size: string; sha256: string; kept: boolean }[];
  packName: string;
  versions: { name: string; value: string; isCode: boolean }[];
}

/** Maximum findings with a worked example of their largest line. */
const WORKED_MAX = 5;

export function claimDocument(frozen: ClaimEvidence): ClaimDocument {
  const evidence = { ...frozen, cells: withUsageReportParts(frozen.cells) };
  const { claim, totals, disputes } = evidence;
  const provider = providerName(evidence);
  const amount = dollarsText(BigInt(totals.recoverable_cents));
  return {
    title: `Claim for a credit of ${amount}`,
    organization: claim.organization.name,
    provider,
    footer: `${shortened(claim.organization.name, 60)} · ${claim.id}`,
    period: spanText(claim.period_start, claim.period_end),
    generatedOn: dayText(evidence.generated_at.slice(0, 10)),
    ...summaryOf(evidence, provider, amount),
    support: disputes.slice(0, SUPPORTED_MAX).map((dispute) => supportOf(dispute, evidence, provider)),
    moreSupport: Math.max(disputes.length - SUPPORTED_MAX, 0),
    ...daysOf(evidence),
    groups: disputes.map((dispute) => groupOf(dispute, evidence)),
    undercharges: evidence.undercharges.length > 0 ? underchargesOf(evidence) : null,
    rates: rateTables(evidence),
    rateSources: rateSources(evidence, provider),
    examples: disputes.flatMap((dispute) => workedLine(dispute, evidence) ?? []).slice(0, WORKED_MAX),
    samples: samplesOf(evidence),
    samplesNote: samplesNote(evidence),
    pages: evidence.source_pages.map((page) => ({
      file: page.file,
      from: page.url ?? page.filename ?? '',
      received: `${timeText(page.fetched_at)} UTC`,
      size: `${grouped(String(page.bytes))} bytes`,
      sha256: page.sha256,
      kept: page.kept === 'whole',
    })),
    packName: `${claim.id}-evidence.tar.gz`,
    versions: [
      { name: 'SHA-256 of the evidence', value: evidence.sha256, isCode: true },
      { name: 'Price list', value: evidence.pricing_snapshot.version, isCode: true },
      { name: 'Trueup engine', value: evidence.engine_version, isCode: false },
      { name: 'Evidence frozen', value: `${timeText(evidence.generated_at)} UTC`, isCode: false },
    ],
  };
}

const pico = (text: string): Pico => picoFromDecimal(text) ?? 0n;

function daysOf(evidence: ClaimEvidence): Pick<ClaimDocument, 'chartDays' | 'chartText' | 'byDay'> {
  const days = new Map<string, { billed: Pico; expected: Pico }>();
  for (const day of evidence.disputes.flatMap((dispute) => dispute.days)) {
    const sum = days.get(day.day) ?? { billed: 0n, expected: 0n };
    sum.billed += pico(day.billed_usd_exact);
    sum.expected += pico(day.expected_usd_exact);
    days.set(day.day, sum);
  }
  const list = [...days].sort(([a], [b]) => (a < b ? -1 : 1));
  const { totals } = evidence;
  const column = (of: (sum: { billed: Pico; expected: Pico }) => Pico, total: string) =>
    aligned([...list.map(([, sum]) => decimalFromPico(of(sum))), total]);
  const billed = column(({ billed: one }) => one, totals.billed_usd_exact);
  const expected = column(({ expected: one }) => one, totals.expected_usd_exact);
  const difference = column((sum) => sum.billed - sum.expected, totals.disputed_usd_exact);
  const rowAt = (at: number) => [billed[at] ?? '', expected[at] ?? '', difference[at] ?? ''];
  const drawn = list.length > 1 ? list : [];
  return {
    chartDays: drawn.map(([day, sum]) => ({
      label: dayText(day).slice(0, -5),
      billed: usdNumberFromPico(sum.billed),
      expected: usdNumberFromPico(sum.expected),
    })),
    chartText: `Dollars charged and expected on ${list.length} days; the table below has the numbers.`,
    byDay: {
      columns: [
        textColumn(`Day (${billZone(evidence)})`),
        ...['Charged, $', 'Expected, $', 'Difference, $'].map(numberColumn),
      ],
      rows: list.map(([day], at) => [dayText(day), ...rowAt(at)]),
      total: ['Total', ...rowAt(list.length)],
    },
  };
}

const USAGE_CHARS = 150;
/** Maximum calls in the document, or one of each model if there are more models; the pack contains all. */
const SHOWN_SAMPLES = 24;

/** Takes calls of every model in turn. */
function shownSamples({ samples }: ClaimEvidence): ClaimEvidence['samples'] {
  const models = [...new Set(samples.map(({ model }) => model))];
  const groups = models.map((model) => samples.filter((sample) => sample.model === model));
  return takeInTurns(groups, Math.max(SHOWN_SAMPLES, models.length));
}

function samplesOf(evidence: ClaimEvidence): DocumentTable {
  return {
    columns: [
      textColumn('Began (UTC)'),
      { name: 'Request id', kind: 'code' },
      textColumn('Model that answered'),
      textColumn('Status'),
      textColumn('Usage as received, counts above 0'),
    ],
    rows: shownSamples(evidence).map((sample) => [
      timeText(sample.timestamp),
      sample.request_id ?? '–',
      sample.response_model ?? sample.model,
      sample.http_status === null ? sample.status : `${sample.status} ${sample.http_status}`,
      usageText(sample.usage),
    ]),
  };
}

/** The counts of a usage object with their names, in one line. */
function usageText(usage: unknown): string {
  const text = typeof usage === 'string' ? usage : countsOf(usage, '').join(', ');
  return shortened(text === '' ? '–' : text, USAGE_CHARS);
}

function countsOf(value: unknown, name: string): string[] {
  if (typeof value === 'number') return value === 0 ? [] : [`${name} ${grouped(String(value))}`];
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, part]) => countsOf(part, name === '' ? key : `${name}.${key}`));
}

function samplesNote(evidence: ClaimEvidence): string {
  const { events } = evidence;
  const samples = shownSamples(evidence);
  const name = evidence.claim.organization.name;
  if (samples.length === 0) return `${name} recorded no calls behind the disputed lines.`;
  const all = `${samples.length} of the ${counted(events.total, 'call')} of the disputed days and models, for you to look up.`;
  return events.complete ? `${all} The pack has all of them in events.jsonl.` : all;
}

/** The first page of a claim's document: parties, mistakes, sums and the request. */

interface Summary {
  facts: { name: string; value: string; isCode: boolean }[];
  /** A kind of mistake, its sentence and its findings. */
  faults: { title: string; text: string; findings: DocumentTable }[];
  moreFaults: string;
  /** Charged and right rates side by side; null: no rate is disputed. */
  rateChanges: DocumentTable | null;
  rateChangesNote: string;
  sums: { name: string; value: string; isTotal: boolean }[];
  sumsNote: string;
  remedy: string;
  remedyTo: string;
  notes: readonly string[];
}

/** Maximum findings, and model names, that fit on the page. */
const FINDINGS_MAX = 6;
const MODELS_MAX = 6;
const MODEL_CHARS = 36;
/** Table rows that fit on the page, and below the height of a sentence and a table head in rows. */
const ROWS_MAX = 20;
const HEAD_ROWS = 3.5;

export function summaryOf(evidence: ClaimEvidence, provider: string, amount: string): Summary {
  const { claim, disputes } = evidence;
  const shown = largestOf(disputes);
  const more = disputes.length - shown.length;
  const changes = rateChanges(evidence, Math.floor(ROWS_MAX - rowsOf(shown)));
  const period = spanText(claim.period_start, claim.period_end);
  return {
    facts: factsOf(evidence, provider, period),
    faults: [...faultsOf(shown, provider).values()].map(({ title, text, of }) => ({
      title,
      text,
      findings: findingsTable(of, evidence),
    })),
    moreFaults: more > 0 ? `${counted(more, 'further finding')} in the lines.` : '',
    rateChanges: changes?.table ?? null,
    rateChangesNote:
      changes && changes.more > 0 ? `${counted(changes.more, 'further rate')} in the lines.` : '',
    ...sumsOf(evidence),
    remedy: `Please issue a credit memo of ${amount} for ${period}.`,
    remedyTo: `${claim.provider_account_id ? 'To the account below. ' : ''}Please quote the claim’s id.`,
    notes: evidence.notes,
  };
}

/** The largest disputes that fit on the page, in the order of the claim. */
function largestOf(disputes: readonly EvidenceDispute[]): EvidenceDispute[] {
  const shown = new Set<EvidenceDispute>();
  for (const one of [...disputes].sort((a, b) => b.amount_cents - a.amount_cents)) {
    if (shown.size === FINDINGS_MAX || rowsOf([...shown, one]) >= ROWS_MAX) break;
    shown.add(one);
  }
  return disputes.filter((one) => shown.has(one));
}

/** Including the table of rates. */
const rowsOf = (disputes: readonly EvidenceDispute[]): number =>
  disputes.length + HEAD_ROWS * (faultsOf(disputes, '').size + 1);

function factsOf(evidence: ClaimEvidence, provider: string, period: string): Summary['facts'] {
  const { claim } = evidence;
  const models = [...new Set(evidence.disputes.map(({ model }) => model))];
  const contracts = contractTexts(evidence, provider);
  const invoices = [...new Set(evidence.invoice_refs.flatMap(({ invoice_id }) => invoice_id ?? []))];
  const fact = (name: string, value: string, isCode = false) => ({ name, value, isCode });
  return [
    fact('From', claim.organization.name),
    fact('To', `${provider}, billing support`),
    claim.provider_account_id
      ? fact('Account', claim.provider_account_id, true)
      : fact('Account', 'all accounts of the organization'),
    fact('Claim', claim.id, true),
    fact('Period', `${period} (${billZone(evidence)})`),
    fact(models.length > 1 ? 'Models' : 'Model', modelsText(models)),
    ...(invoices.length > 0
      ? [fact(invoices.length > 1 ? 'Invoices' : 'Invoice', invoices.join(', '), true)]
      : [fact('Bill', billText(evidence, provider))]),
    ...contracts.map((text) => fact('Contract', text)),
  ];
}

/** A single long name is shown whole; several names are cut. */
function modelsText(models: readonly string[]): string {
  const [only, ...others] = models;
  if (only !== undefined && others.length === 0) return only;
  const shown = models.slice(0, MODELS_MAX).map((model) => shortened(model, MODEL_CHARS));
  const more = models.length - shown.length;
  return more > 0 ? `${shown.join(', ')} and ${more} more` : shown.join(', ');
}

function billText({ source_pages }: ClaimEvidence, provider: string): string {
  if (source_pages.length === 0) return `${provider}’s bill as it was imported`;
  const names = [...new Set(source_pages.map(({ filename, file }) => filename ?? file))];
  const shown = names.length > 3 ? counted(names.length, 'page') : listed(names);
  const reports = names.length === 1 ? 'report' : 'reports';
  return `${shown}: ${provider}’s own ${reports}, without an invoice number`;
}

/** Groups disputes by kind and sentence. */
function faultsOf(
  disputes: readonly EvidenceDispute[],
  provider: string,
): Map<string, { title: string; text: string; of: EvidenceDispute[] }> {
  const faults = new Map<string, { title: string; text: string; of: EvidenceDispute[] }>();
  for (const dispute of disputes) {
    const text = shortened(faultText(dispute, provider), 300);
    const key = JSON.stringify([dispute.kind, text]);
    const fault = faults.get(key) ?? { title: words(dispute.kind), text, of: [] };
    fault.of.push(dispute);
    faults.set(key, fault);
  }
  return faults;
}

/** Includes charged units beside those of the usage report, if the report counts fewer. */
function findingsTable(disputes: readonly EvidenceDispute[], evidence: ClaimEvidence): DocumentTable {
  const counts = disputes.map((dispute) => reportCount(cellsOf(dispute, evidence)));
  const hasCounts = counts.every((count) => count !== undefined);
  return {
    columns: [
      textColumn('Model'),
      textColumn('Days'),
      ...(hasCounts ? ['Units charged', 'Units by the usage report'].map(numberColumn) : []),
      numberColumn('Charged too much'),
    ],
    rows: disputes.map((one, at) => [
      shortened(one.model, MODEL_CHARS),
      spanText(one.period_start, one.period_end),
      ...(hasCounts ? [counts[at]?.billed ?? '', counts[at]?.reported ?? ''] : []),
      dollarsText(BigInt(one.amount_cents)),
    ]),
  };
}

const centsOf = (exact: string): bigint => claimCents(picoFromDecimal(exact) ?? 0n);

/** Whole cents that add up: between two rounded figures it shows the difference of the rounded ones. */
function sumsOf({ totals }: ClaimEvidence): Pick<Summary, 'sums' | 'sumsNote'> {
  const charged = centsOf(totals.billed_usd_exact);
  const difference = centsOf(totals.disputed_usd_exact);
  const credit = BigInt(totals.recoverable_cents);
  const sum = (name: string, cents: bigint, isTotal = false) => ({
    name,
    value: dollarsText(cents).replace('-', '−'),
    isTotal,
  });
  return {
    sums: [
      sum('Charged on the disputed lines', charged),
      sum('Right charge for the same lines', charged - difference),
      ...(totals.netted_usd_exact === '0'
        ? []
        : [
            sum('Difference', difference),
            sum('Less what was charged too little in the same months', credit - difference),
          ]),
      sum('Credit requested', credit, true),
    ],
    sumsNote:
      'In whole cents that add up; the credit is rounded down. The tables on the following pages have all digits.',
  };
}
