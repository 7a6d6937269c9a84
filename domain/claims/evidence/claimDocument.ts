/** The text of a claim's document: every amount as it is shown, so that the template does no arithmetic. */
import { decimalFromPico, type Pico, picoFromDecimal, usdNumberFromPico } from '../../money.js';
import { dollarsText } from '../claimAmount.js';
import type { ClaimEvidence } from './claimEvidence.js';
import { billZone, providerName } from './documentParties.js';
import { type DocumentTable, numberColumn, rateSources, rateTables, textColumn } from './documentRates.js';
import { type Summary, summaryOf } from './documentSummary.js';
import { SUPPORTED_MAX, type Support, supportOf } from './documentSupport.js';
import { groupOf, type LineGroup, underchargesOf, type WorkedLine, workedLine } from './documentTables.js';
import { aligned, counted, dayText, grouped, shortened, spanText, timeText } from './documentTexts.js';
import { takeInTurns } from './takeInTurns.js';
import { withUsageReportParts } from './usageReportParts.js';

export interface ClaimDocument extends Summary {
  title: string;
  organization: string;
  provider: string;
  /** At the foot of every page. */
  footer: string;
  period: string;
  generatedOn: string;
  support: readonly Support[];
  /** Findings whose support is not shown. */
  moreSupport: number;
  /** For the chart; drawn, never read. Empty for a single day. */
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

/** Findings whose largest line is worked out. */
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
/** Calls that the document names, or one of each model where those are more; the pack has all of them. */
const SHOWN_SAMPLES = 24;

/** Of every model in turn. */
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

/** The counts of a usage object in a line, by their names. */
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
