/** The tables of a claim's document: lines, rates, what is netted, and a line worked out. */
import type { ClaimDocument } from './claimDocument.js';
import type { ClaimEvidence, EvidenceCell, EvidenceDispute, EvidenceRate } from './claimEvidence.js';
import { aligned, dayText, grouped, spanText, words } from './documentTexts.js';

/** A class under its circumstances: `Cache read, batch`. */
export function meterText(of: {
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

export function groupOf(
  dispute: EvidenceDispute,
  all: readonly EvidenceCell[],
): ClaimDocument['groups'][number] {
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

export function underchargesOf({
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

export function rateLine(rate: EvidenceRate): string[] {
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

export function priceSources({ pricing_snapshot }: ClaimEvidence): string[][] {
  const pages = [...new Set(pricing_snapshot.rates.flatMap((rate) => rate.price_page_url ?? []))];
  return [
    ...pricing_snapshot.sources.map(({ key, name, url }) => [key, name, url ?? '']),
    ...pages.map((url) => ['', 'The provider’s own price page, to compare', url]),
  ];
}

/** The largest line of a dispute, worked out. */
export function exampleOf(dispute: EvidenceDispute, evidence: ClaimEvidence): ClaimDocument['examples'] {
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
        ...(cell.usage_report_quantity === null
          ? []
          : [
              [
                'Usage report',
                `${shownQuantity(cell.usage_report_quantity)} units`,
                `what the provider’s own report counts, ${cell.usage_report_rows[0]?.page ?? ''}`,
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
