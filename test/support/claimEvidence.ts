import type {
  ClaimEvidence,
  EvidenceCell,
  EvidenceDispute,
  EvidenceRate,
} from '../../domain/claims/evidence/claimEvidence.js';

/** A line of a claim, for its evidence: quantities are millions of tokens, so that a rate is also the line's dollars. */
export interface LineParts extends Partial<EvidenceCell> {
  day?: string;
  model?: string;
  charged: string;
  expected: string;
}

export const HASH = '29a77def9c1a6a2d3e8d1f0c4b5a69788f0e1d2c3b4a59687f0e1d2c3b4a5968';

export function aRate(parts: Partial<EvidenceRate> = {}): EvidenceRate {
  return {
    ...{ id: 'rate-1', provider: 'openai', model: 'gpt-6-sol', token_class: 'output' },
    ...{ service_tier: 'standard', is_batch: false, long_context: false, region: null },
    ...{ usd_per_mtok: 12, usd_per_mtok_exact: '12', effective_from: '2026-07-30', effective_to: null },
    ...{ kind: 'list', agreement: 'agree', retrieved_on: '2026-11-20', source_keys: ['one', 'two'] },
    ...{ price_page_url: 'https://example.com/pricing', contract: null, untold_discount_percent: null },
    ...{ contract_discount_percent: null, list_usd_per_mtok_exact: null },
    ...parts,
  };
}

export function aLine({ charged, expected, ...parts }: LineParts): EvidenceCell {
  const difference = String(Number((Number(charged) - Number(expected)).toFixed(9)));
  return {
    ...{ dispute_id: 'dsp_1', day: '2026-10-06', model: 'gpt-6-sol', token_class: 'output' },
    ...{ service_tier: 'standard', is_batch: null, long_context: false, region: null },
    ...{ billed_quantity: '1000000', right_quantity: '1000000', observed_quantity: '1000000' },
    ...{ billed_rate_usd: Number(charged), expected_rate_usd: Number(expected) },
    ...{ billed_usd: Number(charged), billed_usd_exact: charged },
    ...{ expected_usd: Number(expected), expected_usd_exact: expected },
    ...{ difference_usd: Number(difference), difference_usd_exact: difference },
    ...{ rate_usd_exact: difference, volume_usd_exact: '0', basis: 'rates', page_usd_exact: charged },
    parts: [{ quantity: '1000000', rate: 'rate-1' }],
    rows: [
      {
        ...{ page: 'pages/001-costs.json', document: 0, at: '/data/0/results/5' },
        ...{ amount: [{ at: '/amount', times: '1' }], quantity: null, fx_rate: null },
      },
    ],
    ...{ quantity_rows: [], usage_report_quantity: null, usage_report_rows: [] },
    ...parts,
  };
}

const sumOf = (cells: readonly EvidenceCell[], of: (cell: EvidenceCell) => string): string =>
  String(Number(cells.reduce((sum, cell) => sum + Number(of(cell)), 0).toFixed(9)));

function aDispute(cells: readonly EvidenceCell[], parts: Partial<EvidenceDispute>): EvidenceDispute {
  const [first] = cells;
  const days = [...new Set(cells.map(({ day }) => day))].sort();
  const difference = sumOf(cells, (cell) => cell.difference_usd_exact);
  const ofDay = (day: string) => cells.filter((cell) => cell.day === day);
  return {
    ...{ dispute_id: first?.dispute_id ?? '', finding_id: 'fnd_1', model: first?.model ?? '' },
    ...{ kind: 'price_effective_date_mismatch', confidence_tier: 'HIGH' },
    ...{ period_start: days[0] ?? '', period_end: days.at(-1) ?? '' },
    reason:
      'The price from before 2026-07-30 was charged while the later one held. The bill is $3.01 too much on 2026-10-06.',
    amount_cents: Math.floor(Number(difference) * 100),
    ...{ billed_usd: 0, billed_usd_exact: sumOf(cells, (cell) => cell.billed_usd_exact) },
    ...{ expected_usd: 0, expected_usd_exact: sumOf(cells, (cell) => cell.expected_usd_exact) },
    ...{ difference_usd: Number(difference), difference_usd_exact: difference },
    ...{ missing_gates: [], visibility: 'V2', run_id: 'run_1' },
    days: days.map((day) => ({
      day,
      billed_usd_exact: sumOf(ofDay(day), (cell) => cell.billed_usd_exact),
      expected_usd_exact: sumOf(ofDay(day), (cell) => cell.expected_usd_exact),
      difference_usd_exact: sumOf(ofDay(day), (cell) => cell.difference_usd_exact),
      ...{ rate_usd_exact: '0', volume_usd_exact: '0', own_usd_exact: '0' },
    })),
    waterfall: [{ signal: 'explanation_amounts', level: 'speaks_for', bits: 60 }],
    ...parts,
  };
}

/** Evidence of a claim with one finding for each `dispute_id` of its lines. */
export function aClaimEvidence(
  cells: readonly EvidenceCell[],
  {
    dispute = {},
    ...parts
  }: Partial<Omit<ClaimEvidence, 'cells'>> & { dispute?: Partial<EvidenceDispute> } = {},
): ClaimEvidence {
  const ids = [...new Set(cells.map(({ dispute_id }) => dispute_id))];
  const disputes = ids.map((id) =>
    aDispute(
      cells.filter(({ dispute_id }) => dispute_id === id),
      dispute,
    ),
  );
  const billed = sumOf(cells, (cell) => cell.billed_usd_exact);
  const expected = sumOf(cells, (cell) => cell.expected_usd_exact);
  const difference = sumOf(cells, (cell) => cell.difference_usd_exact);
  const days = [...new Set(cells.map(({ day }) => day))].sort();
  const cents = Math.floor(Number(difference) * 100);
  const hypothesis = { type: 'x', posterior: 0.998, next_best: null, odds: null };
  return {
    format: 'trueup-claim-evidence/1',
    claim: {
      ...{ id: 'clm_01a2072ae49f700091be8c3899bc4d49', organization: { id: 'org_1', name: 'Fjäll & Søn' } },
      ...{ provider: 'openai', provider_account_id: 'org-Fjall0000000000000000' },
      ...{ period_start: days[0] ?? '', period_end: days.at(-1) ?? '', confidence_tier: 'HIGH' },
      ...{ currency: 'USD', total_recoverable_cents: cents },
    },
    pricing_snapshot: {
      ...{ version: '20261123T064926176862Z-72646519', captured_at: '2026-11-23T06:49:41Z' },
      rates: [aRate()],
      sources: [
        {
          key: 'one',
          name: 'First price list',
          url: 'https://example.com/first/model_prices_and_context_window.json',
        },
        { key: 'two', name: 'Second price list', url: null },
      ],
    },
    disputes,
    cells,
    observed: [],
    matches: cells.map(({ day, model }, at) => ({
      ...{ id: `mat_${at}`, day, model, match_status: 'partial', confidence: 'HIGH' },
      ...{ confidence_score: 0.99, event_count: 7 },
    })),
    invoice_refs: [],
    hypothesis,
    hypotheses: disputes.map(({ dispute_id }) => ({
      ...{ dispute_id, variant: '', match_probability: 0.99, ...hypothesis },
    })),
    waterfall: [{ signal: 'explanation_amounts', level: 'speaks_for', bits: 60 }],
    decomposition: { rate: 0, rate_exact: '0', volume: 0, volume_exact: '0', own: 0, own_exact: '0' },
    totals: {
      ...{ billed_usd: 0, billed_usd_exact: billed, expected_usd: 0, expected_usd_exact: expected },
      ...{ disputed_usd: 0, disputed_usd_exact: difference, netted_usd: 0, netted_usd_exact: '0' },
      ...{ recoverable_usd: 0, recoverable_usd_exact: difference, recoverable_cents: cents },
    },
    undercharges: [],
    samples: [
      {
        ...{
          request_id: 'req_011CSHoEeqs5C35K2UUqR7Fy',
          day: '2026-10-06',
          timestamp: '2026-10-06T00:49:36Z',
        },
        ...{ end_at: '2026-10-06T00:49:40Z', model: 'gpt-6-sol', response_model: 'gpt-6-sol' },
        ...{ service_tier: null, status: 'ok', http_status: 200 },
        usage: { prompt_tokens: 166_754, prompt_tokens_details: { cached_tokens: 0, audio_tokens: 12 } },
      },
    ],
    events: { file: 'events.jsonl', included: 7, total: 7, complete: true },
    source_pages: [
      {
        ...{ file: 'pages/001-costs.json', url: null, filename: 'costs.json', source_id: 'imp_1' },
        ...{ fetched_at: '2026-11-02T06:49:36Z', provider_request_id: null, bytes: 543_994 },
        ...{ sha256: HASH, format: 'openai_costs', kept: 'whole' },
      },
    ],
    requested_remedy: '',
    notes: [],
    weight_set_version: 'default-1',
    engine_version: '7.8',
    generated_at: '2026-11-23T06:49:41Z',
    sha256: [...HASH].reverse().join(''),
    ...parts,
  };
}
