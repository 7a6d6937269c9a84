/**
 * What a claim rests on, as it is frozen when the claim is made: the object of `GET /api/v1/claims/{id}` and the file
 * `claim.json` of its pack (docs/evidence.md). Amounts are numbers of dollars as everywhere on the wire; beside each whose
 * digits matter stands its exact decimal under the same name with `_exact`.
 */
import type { JsonValue } from './claimCsv.js';

export const EVIDENCE_FORMAT = 'trueup-claim-evidence/1';

/** A number on a page: where it stands in its record, and by what it is multiplied; `by` names a second number. */
export interface EvidenceTerm {
  /** A JSON pointer inside the record, or a column of a table. */
  at: string;
  /** A decimal: `-1` takes it off, `0.01` makes dollars of cents. */
  times: string;
  /** Another number of the record that it is multiplied by. */
  by?: string;
}

/** A row of a bill: which record of which page says it, and of which numbers it is the sum. */
export interface EvidenceRow {
  /** Name of a file of the pack. */
  page: string;
  /** Of the JSON documents that stand one after the other in the file, from 0; 0 in a table. */
  document: number;
  /** JSON pointer of the record; `#17` for the 17th record of a table, from 0, its header not counted. */
  at: string;
  /** Sum that is the amount, in the currency of the bill; null: of a row of the usage report. */
  amount: readonly EvidenceTerm[] | null;
  /** Sum that is the quantity; null: the record gives none. */
  quantity: readonly EvidenceTerm[] | null;
  /** US dollars for one unit of the bill's currency, where that is another. */
  fx_rate: string | null;
}

/** A part of a cell's quantity, and the rate that holds for it. */
export interface EvidencePart {
  quantity: string;
  rate: string;
}

/** How what should have been charged was worked out. */
const CELL_BASES = ['rates', 'stated'] as const;
export type CellBasis = (typeof CELL_BASES)[number];

/** One day of one class of one model under the circumstances that the bill tells apart. */
export interface EvidenceCell {
  dispute_id: string;
  day: string;
  model: string;
  token_class: string;
  service_tier: string;
  is_batch: boolean | null;
  long_context: boolean | null;
  region: string | null;
  /** Units as billed; null where the bill gives none. */
  billed_quantity: string | null;
  /** Units that are right, of those billed; the same as billed where the rate alone is wrong. */
  right_quantity: string | null;
  /** Units that calls show on this meter. */
  observed_quantity: string | null;
  /** Dollars for a million units as charged. */
  billed_rate_usd: number | null;
  /** Dollars for a million units as agreed; null for a mixture of several. */
  expected_rate_usd: number | null;
  billed_usd: number;
  billed_usd_exact: string;
  expected_usd: number;
  expected_usd_exact: string;
  difference_usd: number;
  difference_usd_exact: string;
  /** difference = rate + volume: amount less quantity at the rates, and the units too many at them. */
  rate_usd_exact: string;
  volume_usd_exact: string;
  /** `rates`: recomputed from quantities and rates; `stated`: as the explanation has it. */
  basis: CellBasis;
  parts: readonly EvidencePart[];
  /** What the rows of the page sum to; the same as billed but where a part of a day is disputed. */
  page_usd_exact: string | null;
  rows: readonly EvidenceRow[];
  /** Rows of the provider's usage report that give the quantity, where the bill itself does not. */
  quantity_rows: readonly EvidenceRow[];
  /** Where units are too many: the line's part of the provider's own usage report; null where the report does not count it. */
  usage_report_quantity: string | null;
  /** Sum of `usage_report_rows`; lines that share rows have parts that add up to it. Absent in older evidence. */
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
  /** First day, and first day on which it no longer holds. */
  effective_from: string | null;
  effective_to: string | null;
  kind: 'list' | 'contract' | 'override' | 'import';
  /** How far its sources agree, or whose own price it is. */
  agreement: string;
  /** Day on which the sources were read. */
  retrieved_on: string | null;
  source_keys: readonly string[];
  /** Where the provider publishes its prices; null of an own price. */
  price_page_url: string | null;
  contract: { document: string; clause: string | null; url: string | null } | null;
  /** Of an agreed rate: percent that the contract takes off the list, where it does, and the list's rate. Older evidence lacks both. */
  contract_discount_percent?: string | null;
  list_usd_per_mtok_exact?: string | null;
  /** Percent that days about this one were charged below what is entered, and that the rate is less for it. */
  untold_discount_percent: number | null;
}

export interface EvidencePriceSource {
  key: string;
  name: string;
  /** Null where nobody said where it can be read. */
  url: string | null;
}

/** Calls of one day, model and class, added up from `events.jsonl`. */
export interface EvidenceObserved {
  day: string;
  model: string;
  token_class: string;
  /** Of calls that ended well, that were cut off, and that failed. */
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
  /** As the client got it. */
  usage: JsonValue;
}

export interface EvidencePage {
  /** Name in the pack. */
  file: string;
  /** What was asked for; null of a file that somebody gave. */
  url: string | null;
  filename: string | null;
  source_id: string;
  fetched_at: string;
  provider_request_id: string | null;
  bytes: number;
  sha256: string;
  format: string;
  /** whole: the file; left_out: it is too large for a pack, its sha256 stands. */
  kept: 'whole' | 'left_out';
}

export interface EvidenceInvoiceRef {
  source_id: string;
  filename: string | null;
  /** As the bill's records name it; null where it names none. */
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
    /** Calls of the claimed days and models; more than are included where there are too many for a pack. */
    total: number;
    /** Whether `observed` is the sum of the file. */
    complete: boolean;
  };
  source_pages: readonly EvidencePage[];
  requested_remedy: string;
  /** What could not be shown line by line, in sentences; empty where everything is. */
  notes: readonly string[];
  weight_set_version: string;
  engine_version: string;
  generated_at: string;
  /** Of the canonical text of all the rest, hex. */
  sha256: string;
}

/** A file of a claim's pack, before it is compressed. */
export interface EvidenceFile {
  name: string;
  mediaType: string;
  bytes: Buffer;
}
