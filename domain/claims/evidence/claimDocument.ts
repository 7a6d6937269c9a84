/** What the document of a claim says, as texts: every amount as it is shown, so that whoever sets it does no arithmetic. */
import { decimalFromPico, type Pico, picoFromDecimal, usdNumberFromPico } from '../../money.js';
import { PROVIDER_FACTS } from '../../providers.js';
import { dollars } from './buildEvidence.js';
import type { ClaimEvidence, EvidenceDispute } from './claimEvidence.js';
import { exampleOf, groupOf, priceSources, rateLine, underchargesOf } from './documentTables.js';
import {
  aligned,
  dayText,
  grouped,
  oddsText,
  percentText,
  shortened,
  spanText,
  timeText,
  words,
} from './documentTexts.js';

export interface ClaimDocument {
  title: string;
  organization: string;
  provider: string;
  claimId: string;
  /** At the foot of every page. */
  footer: string;
  account: string;
  amount: string;
  period: string;
  generatedOn: string;
  generatedAt: string;
  facts: [label: string, value: string][];
  disputes: { model: string; kind: string; reason: string; sure: string; days: string; amount: string }[];
  sums: { label: string; value: string; strong: boolean }[];
  remedy: string;
  notes: readonly string[];
  /** For the chart; drawn, never read. */
  chartDays: { label: string; billed: number; expected: number }[];
  chartText: string;
  byDay: string[][];
  byDayTotal: string[];
  groups: { title: string; subtitle: string; lines: string[][]; total: string[] }[];
  undercharges: string[][];
  underchargeTotal: string;
  rates: string[][];
  priceSources: string[][];
  examples: { title: string; steps: string[][] }[];
  samples: string[][];
  samplesNote: string;
  evidenceSteps: string[][];
  pages: { file: string; from: string; fetched: string; size: string; sha256: string; kept: boolean }[];
  versions: [label: string, value: string][];
}

export function claimDocument(evidence: ClaimEvidence): ClaimDocument {
  const { claim, totals } = evidence;
  const provider = providerName(claim.provider);
  const amount = dollars(BigInt(totals.recoverable_cents));
  const period = spanText(claim.period_start, claim.period_end);
  return {
    title: `Claim for a credit of ${amount}`,
    organization: claim.organization.name,
    provider,
    claimId: claim.id,
    footer: `${shortened(claim.organization.name, 60)} · ${claim.id}`,
    account: claim.provider_account_id || 'all accounts',
    amount,
    period,
    generatedOn: dayText(evidence.generated_at.slice(0, 10)),
    generatedAt: evidence.generated_at,
    facts: factsOf(evidence, provider, period),
    disputes: evidence.disputes.map((dispute) => summaryOf(dispute, evidence)),
    sums: sumsOf(evidence),
    remedy: `Please issue a credit memo of ${amount} for ${period}.`,
    notes: evidence.notes,
    ...daysOf(evidence),
    groups: evidence.disputes.map((dispute) => groupOf(dispute, evidence.cells)),
    ...underchargesOf(evidence),
    rates: evidence.pricing_snapshot.rates.map(rateLine),
    priceSources: priceSources(evidence),
    examples: evidence.disputes.flatMap((dispute) => exampleOf(dispute, evidence)),
    samples: shownSamples(evidence).map((sample) => [
      timeText(sample.timestamp).replace(' UTC', ''),
      sample.request_id ?? '–',
      sample.response_model ?? sample.model,
      sample.http_status === null ? sample.status : `${sample.status} ${sample.http_status}`,
      usageText(sample.usage),
    ]),
    samplesNote: samplesNote(evidence),
    evidenceSteps: evidence.waterfall
      .filter(({ bits }) => Math.abs(bits) >= 0.05)
      .map(({ signal, level, bits }) => [
        words(signal),
        words(level.replace(/(\d)_(\d)/g, '$1.$2')),
        `${bits < 0 ? '−' : '+'}${Math.abs(bits).toFixed(1)}`,
      ]),
    pages: evidence.source_pages.map((page) => ({
      file: page.file,
      from: page.url ?? page.filename ?? '',
      fetched: timeText(page.fetched_at),
      size: `${grouped(String(page.bytes))} bytes`,
      sha256: page.sha256,
      kept: page.kept === 'whole',
    })),
    versions: [
      ['Evidence SHA-256', evidence.sha256],
      [
        'Prices',
        `${evidence.pricing_snapshot.version}, as of ${timeText(evidence.pricing_snapshot.captured_at)}`,
      ],
      ['Engine and weights', `${evidence.engine_version}, ${evidence.weight_set_version}`],
      ['Frozen', timeText(evidence.generated_at)],
    ],
  };
}

const providerName = (slug: string): string =>
  PROVIDER_FACTS.find((facts) => facts.slug === slug)?.displayName ?? slug;

function factsOf(evidence: ClaimEvidence, provider: string, period: string): [string, string][] {
  const { claim } = evidence;
  const models = [...new Set(evidence.disputes.map(({ model }) => model))];
  const invoices = evidence.invoice_refs.flatMap(({ invoice_id }) => invoice_id ?? []);
  const bills = evidence.source_pages.length;
  return [
    ['Claimed by', claim.organization.name],
    ['Asked of', `${provider}, billing support`],
    ['Account', claim.provider_account_id || 'all accounts of the organization'],
    ['Period (UTC)', period],
    [models.length > 1 ? 'Models' : 'Model', models.join(', ')],
    [
      invoices.length > 0 ? 'Invoices' : 'Bill',
      invoices.length > 0
        ? [...new Set(invoices)].join(', ')
        : `${bills} ${bills === 1 ? 'page' : 'pages'} of the provider’s own reports (appendix); the reports name no invoice number`,
    ],
    ['Claim', claim.id],
  ];
}

function summaryOf(dispute: EvidenceDispute, evidence: ClaimEvidence): ClaimDocument['disputes'][number] {
  const hypothesis = evidence.hypotheses.find((one) => one.dispute_id === dispute.dispute_id);
  const percent = hypothesis ? percentText(hypothesis.posterior) : '';
  const next =
    hypothesis?.next_best && hypothesis.next_best !== 'none' && hypothesis.odds !== null
      ? `; the next explanation (${words(hypothesis.next_best).toLowerCase()}) is ${oddsText(hypothesis.odds)} times less likely`
      : '';
  return {
    model: shortened(dispute.model, 48),
    kind: words(dispute.kind),
    reason: shortened(dispute.reason, 300),
    sure: `${words(dispute.confidence_tier.toLowerCase())} confidence: ${percent} probable${next}.`,
    days: spanText(dispute.period_start, dispute.period_end),
    amount: dollars(BigInt(dispute.amount_cents)),
  };
}

function sumsOf({ totals }: ClaimEvidence): ClaimDocument['sums'] {
  const exact = [
    { label: 'Charged on the disputed lines', text: totals.billed_usd_exact },
    { label: 'Should have been charged', text: totals.expected_usd_exact },
    { label: 'Difference', text: totals.disputed_usd_exact },
    ...(totals.netted_usd_exact === '0'
      ? []
      : [
          {
            label: 'Less what was charged too little in the same months',
            text: `-${totals.netted_usd_exact}`,
          },
        ]),
  ];
  const shown = aligned(exact.map(({ text }) => text));
  return [
    ...exact.map(({ label }, at) => ({ label, value: `$${shown[at]}`.replace('$−', '−$'), strong: false })),
    {
      label: 'Credit requested, rounded down to the cent',
      value: dollars(BigInt(totals.recoverable_cents)),
      strong: true,
    },
  ];
}

const pico = (text: string): Pico => picoFromDecimal(text) ?? 0n;

function daysOf(
  evidence: ClaimEvidence,
): Pick<ClaimDocument, 'chartDays' | 'chartText' | 'byDay' | 'byDayTotal'> {
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
  return {
    chartDays: list.map(([day, sum]) => ({
      label: dayText(day).slice(0, -5),
      billed: usdNumberFromPico(sum.billed),
      expected: usdNumberFromPico(sum.expected),
    })),
    chartText: `Dollars charged and expected on ${list.length} days; the table below has the numbers.`,
    byDay: list.map(([day], at) => [dayText(day), ...rowAt(at)]),
    byDayTotal: ['Total', ...rowAt(list.length)],
  };
}

const SAMPLE_CHARS = 150;
/** Calls that the document names; the pack has more. */
const SHOWN_SAMPLES = 24;

/** At even distances. */
function shownSamples({ samples }: ClaimEvidence): ClaimEvidence['samples'] {
  if (samples.length <= SHOWN_SAMPLES) return samples;
  return Array.from(
    { length: SHOWN_SAMPLES },
    (_, at) => samples[Math.floor((at * samples.length) / SHOWN_SAMPLES)] as (typeof samples)[number],
  );
}

/** The usage object in a line. */
function usageText(usage: unknown): string {
  const text = typeof usage === 'string' ? usage : JSON.stringify(usage ?? null);
  const plain = text.replace(/[{}"]/g, '').replaceAll(',', ', ').replaceAll(':', ' ');
  return plain.length > SAMPLE_CHARS ? `${plain.slice(0, SAMPLE_CHARS)}…` : plain;
}

function samplesNote(evidence: ClaimEvidence): string {
  const { events } = evidence;
  const samples = shownSamples(evidence);
  if (samples.length === 0) return 'No calls were seen behind the disputed lines.';
  return events.complete
    ? `${samples.length} of ${grouped(String(events.total))} calls behind the disputed days; all of them are in events.jsonl of the pack, with usage as received.`
    : `${samples.length} of ${grouped(String(events.total))} calls behind the disputed days.`;
}
