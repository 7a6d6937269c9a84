/**
 * The evidence of a claim, frozen when the claim is created: the object of `GET /api/v1/claims/{id}` and the file
 * `claim.json` of its pack (docs/evidence.md). Amounts are numbers of dollars, as everywhere on the wire. An
 * amount whose digits matter has its exact decimal beside it, under the same name with `_exact`.
 */
import type { JsonValue } from './claimCsv.js';

export const EVIDENCE_FORMAT = 'trueup-claim-evidence/1';

/** A number on a page: its place in the record and its factor; `by` names a second number to multiply. */
export interface EvidenceTerm {
  /** A JSON pointer inside the record, or a column of a table. */
  at: string;
  /** A decimal: `-1` subtracts the number, `0.01` converts cents to dollars. */
  times: string;
  /** The place of another number of the record to multiply by. */
  by?: string;
}

/** A row of a bill: the page and record that contain it, and the numbers that it is the sum of. */
export interface EvidenceRow {
  /** File name in the pack. */
  page: string;
  /** Index of the JSON document in a file with several, from 0; 0 for a table. */
  document: number;
  /** JSON pointer of the record; `#17`: record 17 of a table, from 0, without the header. */
  at: string;
  /** Terms that add up to the amount in the bill's currency; null: a row of the usage report. */
  amount: readonly EvidenceTerm[] | null;
  /** Terms that add up to the quantity; null: the record has none. */
  quantity: readonly EvidenceTerm[] | null;
  /** US dollars per unit of the bill's currency; null: the bill is in US dollars. */
  fx_rate: string | null;
}

/** A part of a cell's quantity and its rate. */
export interface EvidencePart {
  quantity: string;
  rate: string;
}

/** The basis of the right charge. */
const CELL_BASES = ['rates', 'stated'] as const;
export type CellBasis = (typeof CELL_BASES)[number];

/** One day, model and class of the bill, further divided by the circumstances that the bill separates. */
export interface EvidenceCell {
  dispute_id: string;
  day: string;
  model: string;
  token_class: string;
  service_tier: string;
  is_batch: boolean | null;
  long_context: boolean | null;
  region: string | null;
  /** Billed units; null: the bill has none. */
  billed_quantity: string | null;
  /** The right number of units; equal to the billed one if only the rate is wrong. */
  right_quantity: string | null;
  /** Units of the calls on this meter. */
  observed_quantity: string | null;
  /** Charged dollars per million units. */
  billed_rate_usd: number | null;
  /** Agreed dollars per million units; null: several rates are mixed. */
  expected_rate_usd: number | null;
  billed_usd: number;
  billed_usd_exact: string;
  expected_usd: number;
  expected_usd_exact: string;
  difference_usd: number;
  difference_usd_exact: string;
  /**
   * difference = rate + volume: the amount less the quantity at the agreed rates, and the excess units at those
   * rates.
   */
  rate_usd_exact: string;
  volume_usd_exact: string;
  /** `rates`: recomputed from quantities and rates; `stated`: taken from the explanation. */
  basis: CellBasis;
  parts: readonly EvidencePart[];
  /** Sum of the rows on the page; it differs from the billed amount only if a part of a day is disputed. */
  page_usd_exact: string | null;
  rows: readonly EvidenceRow[];
  /** Usage report rows with the quantity, for bills without quantities. */
  quantity_rows: readonly EvidenceRow[];
  /** For excess units: the line's part of the provider's own usage report; null: the report does not count it. */
  usage_report_quantity: string | null;
  /** Sum of `usage_report_rows`; the parts of lines that share rows add up to it. Absent in older evidence. */
  usage_report_total_quantity?: string | null;
  usage_report_rows: readonly EvidenceRow[];
}

export interface EvidenceRate {
  id: string;
  provider: string;
  model: string;
  token_class: string;
  service_tier: string;
  is_batch: boolean;
  long_context: boolean;
  region: string | null;
  usd_per_mtok: number;
  usd_per_mtok_exact: string;
  /** The first day of the rate, and below the first day after it. */
  effective_from: string | null;
  effective_to: string | null;
  kind: 'list' | 'contract' | 'override' | 'import';
  /** The agreement of the price sources, or the kind of own price. */
  agreement: string;
  /** Day on which the price sources were retrieved. */
  retrieved_on: string | null;
  source_keys: readonly string[];
  /** The provider's price page; null for an own price. */
  price_page_url: string | null;
  contract: { document: string; clause: string | null; url: string | null } | null;
  /**
   * For an agreed rate: the contract's discount on the list rate in percent, if there is one, and below the list
   * rate. Absent in older evidence.
   */
  contract_discount_percent?: string | null;
  list_usd_per_mtok_exact?: string | null;
  /** Percent by which neighbouring days were charged below the entered rate; the rate is reduced by it. */
  untold_discount_percent: number | null;
}

export interface EvidencePriceSource {
  key: string;
  name: string;
  /** null: no address of the document is known. */
  url: string | null;
}

/** The sum of calls of one day, model and class in `events.jsonl`. */
export interface EvidenceObserved {
  day: string;
  model: string;
  token_class: string;
  /** Number of successful calls, and below of cancelled and failed ones. */
  ok: string;
  cancelled: string;
  failed: string;
}

export interface EvidenceHypothesis {
  dispute_id: string;
  type: string;
  variant: string;
  posterior: number;
  match_probability: number;
  next_best: string | null;
  odds: number | null;
}

export interface EvidenceDispute {
  dispute_id: string;
  finding_id: string;
  model: string;
  kind: string;
  confidence_tier: string;
  period_start: string;
  period_end: string;
  reason: string;
  amount_cents: number;
  billed_usd: number;
  billed_usd_exact: string;
  expected_usd: number;
  expected_usd_exact: string;
  difference_usd: number;
  difference_usd_exact: string;
  missing_gates: readonly string[];
  visibility: string;
  run_id: string;
  days: readonly EvidenceDay[];
  waterfall: readonly { signal: string; level: string; bits: number }[];
}

interface EvidenceDay {
  day: string;
  billed_usd_exact: string;
  expected_usd_exact: string;
  difference_usd_exact: string;
  rate_usd_exact: string;
  volume_usd_exact: string;
  own_usd_exact: string;
}

export interface EvidenceMatch {
  id: string;
  day: string;
  model: string;
  match_status: string;
  confidence: string;
  confidence_score: number | null;
  event_count: number | null;
}

export interface EvidenceUndercharge {
  finding_id: string;
  day: string;
  model: string;
  kind: string;
  variant: string;
  reason: string;
  billed_usd_exact: string;
  expected_usd_exact: string;
  difference_usd: number;
  difference_usd_exact: string;
}

export interface EvidenceSample {
  request_id: string | null;
  day: string;
  timestamp: string;
  end_at: string;
  model: string;
  response_model: string | null;
  service_tier: string | null;
  status: string;
  http_status: number | null;
  /** As the client received it. */
  usage: JsonValue;
}

export interface EvidencePage {
  /** Name in the pack. */
  file: string;
  /** The requested address; null: the file was uploaded. */
  url: string | null;
  filename: string | null;
  source_id: string;
  fetched_at: string;
  provider_request_id: string | null;
  bytes: number;
  sha256: string;
  format: string;
  /** whole: the pack contains the file; left_out: the file is too large for a pack, so only its sha256 is listed. */
  kept: 'whole' | 'left_out';
}

export interface EvidenceInvoiceRef {
  source_id: string;
  filename: string | null;
  /** As in the bill's records; null: they have none. */
  invoice_id: string | null;
  fetched_at: string;
  period_start: string | null;
  period_end: string | null;
}

export interface ClaimEvidence {
  format: typeof EVIDENCE_FORMAT;
  claim: {
    id: string;
    organization: { id: string; name: string };
    provider: string;
    provider_account_id: string;
    period_start: string;
    period_end: string;
    confidence_tier: string;
    currency: 'USD';
    total_recoverable_cents: number;
  };
  pricing_snapshot: {
    version: string;
    captured_at: string;
    rates: readonly EvidenceRate[];
    sources: readonly EvidencePriceSource[];
  };
  disputes: readonly EvidenceDispute[];
  cells: readonly EvidenceCell[];
  observed: readonly EvidenceObserved[];
  matches: readonly EvidenceMatch[];
  invoice_refs: readonly EvidenceInvoiceRef[];
  hypothesis: Pick<EvidenceHypothesis, 'type' | 'posterior' | 'next_best' | 'odds'>;
  hypotheses: readonly EvidenceHypothesis[];
  waterfall: readonly { signal: string; level: string; bits: number }[];
  decomposition: {
    rate: number;
    rate_exact: string;
    volume: number;
    volume_exact: string;
    own: number;
    own_exact: string;
  };
  totals: {
    billed_usd: number;
    billed_usd_exact: string;
    expected_usd: number;
    expected_usd_exact: string;
    disputed_usd: number;
    disputed_usd_exact: string;
    netted_usd: number;
    netted_usd_exact: string;
    recoverable_usd: number;
    recoverable_usd_exact: string;
    recoverable_cents: number;
  };
  undercharges: readonly EvidenceUndercharge[];
  samples: readonly EvidenceSample[];
  events: {
    file: string | null;
    included: number;
    /** Calls of the claimed days and models; more than are included if a pack cannot hold all. */
    total: number;
    /** Whether the sums in `observed` cover every call. */
    complete: boolean;
  };
  source_pages: readonly EvidencePage[];
  requested_remedy: string;
  /** Sentences about lines that could not be shown in detail; empty: all were. */
  notes: readonly string[];
  weight_set_version: string;
  engine_version: string;
  generated_at: string;
  /** sha256 of the canonical text of all other fields, hex. */
  sha256: string;
}

/** A file of a claim's pack, before it is compressed. */
export interface EvidenceFile {
  name: string;
  mediaType: string;
  bytes: Buffer;
}
