/** What the document of a claim says, as texts: every amount as it is shown, so that whoever sets it does no arithmetic. */
import { centsDown } from '../../financial/decision.js';
import { decimalFromPico, type Pico, picoFromDecimal, usdNumberFromPico } from '../../money.js';
import { PROVIDER_FACTS } from '../../providers.js';
import { dollars } from './buildEvidence.js';
import type { ClaimEvidence, EvidenceCell, EvidenceDispute, EvidenceRate } from './claimEvidence.js';

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

const shortened = (text: string, chars: number): string =>
  text.length > chars ? `${text.slice(0, chars - 1).trimEnd()}…` : text;

const providerName = (slug: string): string =>
  PROVIDER_FACTS.find((facts) => facts.slug === slug)?.displayName ?? slug;

/** `cache_read_rate_mismatch` → `Cache read rate mismatch`. */
export function words(key: string): string {
  const text = key.replaceAll('_', ' ');
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}

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
    model: dispute.model,
    kind: words(dispute.kind),
    reason: shortened(dispute.reason, 360),
    sure: `${words(dispute.confidence_tier.toLowerCase())} confidence: ${percent} probable${next}.`,
    days: spanText(dispute.period_start, dispute.period_end),
    amount: dollars(BigInt(dispute.amount_cents)),
  };
}

const percentText = (share: number): string => `${(Math.floor(share * 1_000) / 10).toFixed(1)} %`;

const oddsText = (odds: number): string =>
  odds >= 1_000_000 ? 'over a million' : odds >= 10 ? grouped(String(Math.round(odds))) : odds.toFixed(1);

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

/** Decimals with as many digits behind the point as the longest of them has, two at least, and commas before it. */
export function aligned(texts: readonly (string | null)[]): string[] {
  const digits = Math.max(2, ...texts.map((text) => text?.split('.')[1]?.length ?? 0));
  return texts.map((text) => (text === null ? '–' : shownDecimal(text, digits)));
}

function shownDecimal(text: string, digits: number): string {
  const isNegative = text.startsWith('-');
  const [whole = '0', fraction = ''] = (isNegative ? text.slice(1) : text).split('.');
  return `${isNegative ? '−' : ''}${grouped(whole)}.${fraction.padEnd(digits, '0')}`;
}

const grouped = (digits: string): string => digits.replace(/\B(?=(\d{3})+$)/g, ',');

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

/** A class under its circumstances: `Cache read, batch`. */
function meterText(of: {
  token_class: string;
  service_tier: string;
  is_batch: boolean | null;
  long_context: boolean | null;
  region: string | null;
}): string {
  return [
    of.token_class === 'all' ? 'Whole day' : words(of.token_class),
    ...(of.service_tier === 'standard' || of.service_tier === '' ? [] : [of.service_tier]),
    ...(of.is_batch ? ['batch'] : []),
    ...(of.long_context ? ['long context'] : []),
    ...(of.region === null ? [] : [of.region]),
  ].join(', ');
}

function groupOf(dispute: EvidenceDispute, all: readonly EvidenceCell[]): ClaimDocument['groups'][number] {
  const cells = all.filter((cell) => cell.dispute_id === dispute.dispute_id);
  const quantities = cells.map((cell) => {
    if (cell.billed_quantity === null) return '–';
    const right = cell.right_quantity !== null && cell.right_quantity !== cell.billed_quantity;
    return right
      ? `${shownQuantity(cell.billed_quantity)}\n${shownQuantity(cell.right_quantity ?? '')} right`
      : shownQuantity(cell.billed_quantity);
  });
  const billed = aligned([...cells.map((cell) => cell.billed_usd_exact), dispute.billed_usd_exact]);
  const expected = aligned([...cells.map((cell) => cell.expected_usd_exact), dispute.expected_usd_exact]);
  const difference = aligned([
    ...cells.map((cell) => cell.difference_usd_exact),
    dispute.difference_usd_exact,
  ]);
  const last = cells.length;
  return {
    title: dispute.model,
    subtitle: `${words(dispute.kind)}, ${spanText(dispute.period_start, dispute.period_end)}`,
    lines: cells.map((cell, at) => [
      dayText(cell.day),
      meterText(cell),
      quantities[at] ?? '',
      rateText(cell.billed_rate_usd),
      billed[at] ?? '',
      rateText(cell.expected_rate_usd),
      expected[at] ?? '',
      difference[at] ?? '',
    ]),
    total: ['Total', '', '', '', billed[last] ?? '', '', expected[last] ?? '', difference[last] ?? ''],
  };
}

const shownQuantity = (text: string): string => {
  const [whole = '0', fraction] = text.split('.');
  return `${grouped(whole)}${fraction === undefined ? '' : `.${fraction}`}`;
};

/** Dollars for a million units, to six digits: what was charged is a quotient. */
function rateText(rate: number | null): string {
  if (rate === null) return '–';
  const [whole = '0', fraction = ''] = rate.toFixed(6).split('.');
  return `${grouped(whole)}.${fraction.replace(/0+$/, '').padEnd(2, '0')}`;
}

function underchargesOf({
  undercharges,
  totals,
}: ClaimEvidence): Pick<ClaimDocument, 'undercharges' | 'underchargeTotal'> {
  const amounts = aligned([
    ...undercharges.map((one) => one.difference_usd_exact),
    `-${totals.netted_usd_exact}`,
  ]);
  return {
    undercharges: undercharges.map((one, at) => [
      dayText(one.day),
      one.model,
      words(one.kind),
      amounts[at] ?? '',
    ]),
    underchargeTotal: amounts.at(-1) ?? '',
  };
}

function rateLine(rate: EvidenceRate): string[] {
  const from = rate.effective_from === null ? 'always' : `from ${dayText(rate.effective_from)}`;
  const to = rate.effective_to === null ? '' : ` until ${dayText(rate.effective_to)}`;
  return [rate.model, meterText(rate), rateText(rate.usd_per_mtok), `${from}${to}`, basisText(rate)];
}

function basisText(rate: EvidenceRate): string {
  const discount =
    rate.untold_discount_percent === null
      ? ''
      : `, less ${rate.untold_discount_percent} % as charged on other days`;
  if (rate.contract) {
    const { document, clause, url } = rate.contract;
    return `${words(rate.kind)}: ${[document, clause === null ? null : `clause ${clause}`, url].filter(Boolean).join(', ')}${discount}`;
  }
  const read = rate.retrieved_on === null ? '' : `, read ${dayText(rate.retrieved_on)}`;
  return `${words(rate.kind)}: ${rate.source_keys.join(', ')}${read}${discount}`;
}

function priceSources({ pricing_snapshot }: ClaimEvidence): string[][] {
  const pages = [...new Set(pricing_snapshot.rates.flatMap((rate) => rate.price_page_url ?? []))];
  return [
    ...pricing_snapshot.sources.map(({ key, name, url }) => [key, name, url ?? '']),
    ...pages.map((url) => ['', 'The provider’s own price page, to compare', url]),
  ];
}

/** The largest line of a dispute, worked out. */
function exampleOf(dispute: EvidenceDispute, evidence: ClaimEvidence): ClaimDocument['examples'] {
  const cells = evidence.cells.filter(
    (one) => one.dispute_id === dispute.dispute_id && one.basis === 'rates',
  );
  const [first, ...rest] = cells;
  if (!first) return [];
  const cell = rest.reduce((best, one) => (one.difference_usd > best.difference_usd ? one : best), first);
  const rates = new Map(evidence.pricing_snapshot.rates.map((rate) => [rate.id, rate]));
  const quantity = cell.billed_quantity ?? '0';
  const right = cell.right_quantity ?? quantity;
  const parts = cell.parts.map((part) => {
    const rate = rates.get(part.rate);
    return `${shownQuantity(part.quantity)} × $${rate?.usd_per_mtok_exact ?? ''}`;
  });
  const [row] = cell.rows;
  const source = row ? `${row.page}, ${row.at.startsWith('#') ? `record ${row.at.slice(1)}` : row.at}` : '';
  const more = cell.rows.length > 1 ? ` and ${cell.rows.length - 1} more` : '';
  return [
    {
      title: `${dispute.model}: ${meterText(cell).toLowerCase()} of ${dayText(cell.day)}`,
      steps: [
        ['Charged', `$${cell.billed_usd_exact}`, `${source}${more}`],
        [
          'Counted',
          `${shownQuantity(quantity)} units`,
          'the sum of the same records, or of the usage report',
        ],
        ...(right === quantity
          ? []
          : [
              [
                'Right',
                `${shownQuantity(right)} units`,
                `${shownQuantity(cell.observed_quantity ?? '0')} shown by calls`,
              ],
            ]),
        [
          'Expected',
          `$${cell.expected_usd_exact}`,
          `${right === quantity ? parts.join(' + ') : `${shownQuantity(right)} of ${parts.join(' + ')}`}, for a million`,
        ],
        ['Difference', `$${cell.difference_usd_exact}`, 'charged less expected'],
      ],
    },
  ];
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

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** `2026-10-09` → `9 Oct 2026`. */
export function dayText(day: string): string {
  const [year = '', month = '', date = ''] = day.split('-');
  return `${Number(date)} ${MONTHS[Number(month) - 1] ?? month} ${year}`;
}

function spanText(from: string, to: string): string {
  if (from === to) return dayText(from);
  const isSameYear = from.slice(0, 4) === to.slice(0, 4);
  const first =
    from.slice(0, 7) === to.slice(0, 7)
      ? String(Number(from.slice(8)))
      : dayText(from).slice(0, isSameYear ? -5 : undefined);
  return `${first} – ${dayText(to)}`;
}

/** `2026-10-09T00:13:01Z` → `2026-10-09 00:13:01`. */
const timeText = (iso: string): string => `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;

/** Cents of an exact decimal text, rounded down. */
export const centsOfText = (text: string): bigint => centsDown(pico(text));
