/** The object of evidence from what was gathered: texts and numbers of what is exact inside. */
import { publicId } from '../../ids.js';
import {
  decimalFromPico,
  decimalFromScaled,
  type Pico,
  usdNumberFromPico,
  usdNumberOrNull,
} from '../../money.js';
import { isoFromMicros } from '../../period.js';
import { ENGINE_VERSION } from '../../reconciliation/matching/inputMark.js';
import { claimCents, dollarsText } from '../claimAmount.js';
import type { DraftClaim, DraftDispute, NettedUndercharge } from '../draft.js';
import {
  type ClaimEvidence,
  EVIDENCE_FORMAT,
  type EvidenceCell,
  type EvidenceDispute,
  type EvidenceHypothesis,
  type EvidenceInvoiceRef,
  type EvidenceMatch,
  type EvidenceObserved,
  type EvidencePage,
  type EvidenceRow,
  type EvidenceSample,
  type EvidenceUndercharge,
} from './claimEvidence.js';
import type { CellDraft } from './claimedCells.js';
import type { RateRegister } from './rateRegister.js';
import { withUsageReportParts } from './usageReportParts.js';

/** Everything that evidence is made of. */
export interface GatheredEvidence {
  draft: DraftClaim;
  organization: { id: string; name: string };
  cells: readonly {
    cell: CellDraft;
    rows: readonly EvidenceRow[];
    quantityRows: readonly EvidenceRow[];
    toldRows: readonly EvidenceRow[];
    toldQuantity: bigint | null;
    pagePico: Pico | null;
  }[];
  register: RateRegister;
  priceVersion: string;
  observed: readonly EvidenceObserved[];
  matches: readonly EvidenceMatch[];
  invoices: readonly EvidenceInvoiceRef[];
  samples: readonly EvidenceSample[];
  events: ClaimEvidence['events'];
  pages: readonly EvidencePage[];
  notes: readonly string[];
  nowMicros: bigint;
}

/** Without its sha256, which is of all the rest. */
export function buildEvidence(gathered: GatheredEvidence): Omit<ClaimEvidence, 'sha256'> {
  const { draft, register } = gathered;
  const [largest] = [...draft.disputes].sort((a, b) => b.amountCents - a.amountCents);
  if (!largest) throw new RangeError('a claim is over at least one dispute');
  const hypotheses = draft.disputes.map(hypothesisOf);
  const main = hypothesisOf(largest);
  const capturedAt = isoFromMicros(gathered.nowMicros);
  return {
    format: EVIDENCE_FORMAT,
    claim: {
      id: publicId('clm', draft.id),
      organization: {
        id: publicId('org', gathered.organization.id),
        name: gathered.organization.name,
      },
      provider: draft.provider,
      provider_account_id: draft.accountId,
      period_start: draft.periodStart,
      period_end: draft.periodEnd,
      confidence_tier: draft.tier,
      currency: 'USD',
      total_recoverable_cents: Number(draft.recoverableCents),
    },
    pricing_snapshot: {
      version: gathered.priceVersion,
      captured_at: capturedAt,
      rates: register.rates,
      sources: register.sources,
    },
    disputes: draft.disputes.map(disputeOf),
    cells: withUsageReportParts(gathered.cells.map(cellOf)),
    observed: gathered.observed,
    matches: gathered.matches,
    invoice_refs: gathered.invoices,
    hypothesis: {
      type: main.type,
      posterior: main.posterior,
      next_best: main.next_best,
      odds: main.odds,
    },
    hypotheses,
    waterfall: largest.evidence.waterfall,
    decomposition: decompositionOf(draft.disputes),
    totals: totalsOf(draft),
    undercharges: draft.undercharges.map(underchargeOf),
    samples: gathered.samples,
    events: gathered.events,
    source_pages: gathered.pages,
    requested_remedy: `Issue a credit of ${dollarsText(draft.recoverableCents)} for ${draft.periodStart} to ${draft.periodEnd}.`,
    notes: gathered.notes,
    weight_set_version: largest.evidence.weightSet,
    engine_version: ENGINE_VERSION,
    generated_at: capturedAt,
  };
}

const both = <Name extends string>(name: Name, pico: Pico) =>
  ({ [name]: usdNumberFromPico(pico), [`${name}_exact`]: decimalFromPico(pico) }) as Record<Name, number> &
    Record<`${Name}_exact`, string>;

function hypothesisOf({ id, kind, days, evidence }: DraftDispute): EvidenceHypothesis {
  return {
    dispute_id: publicId('dsp', id),
    type: kind,
    variant: days[0]?.variant ?? '',
    posterior: evidence.probability,
    match_probability: evidence.matchProbability,
    next_best: evidence.next?.kind ?? null,
    odds: evidence.next?.odds ?? null,
  };
}

function disputeOf(dispute: DraftDispute): EvidenceDispute {
  return {
    dispute_id: publicId('dsp', dispute.id),
    finding_id: publicId('fnd', dispute.findingId),
    model: dispute.model,
    kind: dispute.kind,
    confidence_tier: dispute.tier,
    period_start: dispute.periodStart,
    period_end: dispute.periodEnd,
    reason: dispute.reason,
    amount_cents: dispute.amountCents,
    ...both('billed_usd', dispute.billedPico),
    ...both('expected_usd', dispute.expectedPico),
    ...both('difference_usd', dispute.billedPico - dispute.expectedPico),
    missing_gates: dispute.evidence.missing,
    visibility: dispute.evidence.visibility,
    run_id: publicId('run', dispute.evidence.runId),
    days: dispute.days.map((day) => ({
      day: day.day,
      billed_usd_exact: decimalFromPico(day.billedPico),
      expected_usd_exact: decimalFromPico(day.expectedPico),
      difference_usd_exact: decimalFromPico(day.impactPico),
      rate_usd_exact: decimalFromPico(day.ratePico),
      volume_usd_exact: decimalFromPico(day.volumePico),
      own_usd_exact: decimalFromPico(day.ownPricingPico),
    })),
    waterfall: dispute.evidence.waterfall,
  };
}

function cellOf({
  cell,
  rows,
  quantityRows,
  toldRows,
  toldQuantity,
  pagePico,
}: GatheredEvidence['cells'][number]): EvidenceCell {
  const meter = cell.meter?.meter;
  const difference = cell.ratePico + cell.volumePico;
  const units = (value: bigint | null) => (value === null ? null : decimalFromScaled(value, 12));
  return {
    dispute_id: publicId('dsp', cell.dispute.id),
    day: cell.day,
    model: cell.dispute.model,
    token_class: meter?.tokenClass ?? 'all',
    service_tier: meter?.serviceTier ?? 'standard',
    is_batch: meter?.isBatch ?? null,
    long_context: meter?.longContext ?? null,
    region: meter?.region ?? null,
    billed_quantity: units(cell.billedQuantity),
    right_quantity: units(cell.rightQuantity),
    observed_quantity: units(cell.observedQuantity),
    billed_rate_usd: usdNumberOrNull(cell.billedRate),
    expected_rate_usd: usdNumberOrNull(cell.expectedRate),
    ...both('billed_usd', cell.billedPico),
    ...both('expected_usd', cell.billedPico - difference),
    ...both('difference_usd', difference),
    rate_usd_exact: decimalFromPico(cell.ratePico),
    volume_usd_exact: decimalFromPico(cell.volumePico),
    basis: cell.basis,
    parts: cell.parts.map(({ quantity, rate }) => ({
      quantity: decimalFromScaled(BigInt(quantity), 12),
      rate,
    })),
    page_usd_exact: pagePico === null ? null : decimalFromPico(pagePico),
    rows,
    quantity_rows: quantityRows,
    usage_report_quantity: units(toldQuantity),
    usage_report_rows: toldRows,
  };
}

function underchargeOf(one: NettedUndercharge): EvidenceUndercharge {
  return {
    finding_id: publicId('fnd', one.findingId),
    day: one.day,
    model: one.model,
    kind: one.kind,
    variant: one.variant,
    reason: one.reason,
    billed_usd_exact: decimalFromPico(one.billedPico),
    expected_usd_exact: decimalFromPico(one.expectedPico),
    ...both('difference_usd', one.impactPico),
  };
}

function decompositionOf(disputes: readonly DraftDispute[]): ClaimEvidence['decomposition'] {
  const days = disputes.flatMap((dispute) => dispute.days);
  const sum = (of: (day: (typeof days)[number]) => Pico) => days.reduce((total, day) => total + of(day), 0n);
  return {
    ...both(
      'rate',
      sum((day) => day.ratePico),
    ),
    ...both(
      'volume',
      sum((day) => day.volumePico),
    ),
    ...both(
      'own',
      sum((day) => day.ownPricingPico),
    ),
  };
}

function totalsOf(draft: DraftClaim): ClaimEvidence['totals'] {
  return {
    ...both('billed_usd', draft.billedPico),
    ...both('expected_usd', draft.expectedPico),
    ...both('disputed_usd', draft.disputedPico),
    ...both('netted_usd', draft.nettedPico),
    ...both('recoverable_usd', draft.recoverablePico),
    recoverable_cents: Number(claimCents(draft.recoverablePico)),
  };
}
