import type { TokenClass } from '../../events/event.js';
import { publicId } from '../../ids.js';
import {
  decimalFromPico,
  decimalFromScaled,
  type Pico,
  usdNumberFromPico,
  usdNumberOrNull,
} from '../../money.js';
import { isoFromMicros } from '../../period.js';
import type { PricedModel } from '../../pricing/pricedModel.js';
import type { Circumstances, DayRates } from '../../reconciliation/audit/dayRates.js';
import { ENGINE_VERSION } from '../../reconciliation/matching/inputMark.js';
import type { DraftClaim, DraftDispute, NettedUndercharge } from '../draft.js';
import { claimCents, dollarsText } from '../financialSummary.js';
import { withUsageReportParts } from './claimCsv.js';
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
  type EvidencePriceSource,
  type EvidenceRate,
  type EvidenceRow,
  type EvidenceSample,
  type EvidenceUndercharge,
} from './claimEvidence.js';
import type { CellDraft } from './claimedCells.js';

/** Builds the evidence from the gathered data: exact texts and numbers instead of scaled integers. */

interface GatheredEvidence {
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

/** Without its sha256, which covers all other fields. */
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

/** Public price collections behind list prices; their pages link each model's price page. */
const COLLECTIONS: Readonly<Record<string, { name: string; url: string }>> = {
  litellm: {
    name: 'LiteLLM model price map',
    url: 'https://github.com/BerriAI/litellm/blob/main/model_prices_and_context_window.json',
  },
  genai_prices: { name: 'pydantic genai-prices', url: 'https://github.com/pydantic/genai-prices' },
  models_dev: { name: 'models.dev', url: 'https://models.dev' },
};

/** Price pages of the providers, for readers who want to compare; the product does not read them. */
const PRICE_PAGES: Readonly<Record<string, string>> = {
  openai: 'https://platform.openai.com/docs/pricing',
  anthropic: 'https://platform.claude.com/docs/en/about-claude/pricing',
  aws_bedrock: 'https://aws.amazon.com/bedrock/pricing/',
  azure_openai: 'https://azure.microsoft.com/pricing/details/cognitive-services/openai-service/',
  google: 'https://cloud.google.com/vertex-ai/generative-ai/pricing',
  mistral: 'https://mistral.ai/pricing',
  xai: 'https://docs.x.ai/docs/models',
};

/** A contract's percentage is scaled by 1e12. */
const PERCENT_DIGITS = 12;

interface Asked {
  rates: DayRates;
  /** Prices without the organization's own prices. */
  list: DayRates;
  model: string;
  tokenClass: TokenClass;
  circumstances: Circumstances;
  discountPercent: number | null;
}

/** The unique rates of a claim's cells, in the order of first use. */
export class RateRegister {
  readonly #rates = new Map<string, EvidenceRate>();
  readonly #sources = new Map<string, EvidencePriceSource>();

  /** The id and value of the applicable rate; undefined: there is none. */
  idOf(asked: Asked): { id: string; rate: Pico } | undefined {
    const found = asked.rates.rate(asked.model, asked.tokenClass, asked.circumstances);
    const priced = asked.rates.priceOf(asked.model);
    if (!found || !priced) return undefined;
    const { serviceTier, isBatch, longContext, contextBand, region } = asked.circumstances;
    const isLong = longContext || contextBand > 0;
    const { version, entry } = priced;
    // A contract for several models has one version.
    const key = JSON.stringify([
      version.id,
      entry.provider,
      entry.model,
      version.effectiveFrom,
      asked.tokenClass,
      serviceTier,
      isBatch,
      isLong,
      region,
      asked.discountPercent,
      String(found.rate),
    ]);
    const known = this.#rates.get(key);
    if (known) return { id: known.id, rate: found.rate };
    const id = `rate-${this.#rates.size + 1}`;
    this.#rates.set(key, {
      id,
      provider: entry.provider,
      model: entry.model,
      token_class: asked.tokenClass,
      service_tier: serviceTier,
      is_batch: isBatch,
      long_context: isLong,
      region,
      usd_per_mtok: usdNumberFromPico(found.rate),
      usd_per_mtok_exact: decimalFromPico(found.rate),
      effective_from: version.effectiveFrom,
      effective_to: version.effectiveTo,
      kind: priced.laid?.statement.kind ?? 'list',
      agreement: priced.agreement,
      retrieved_on: priced.laid ? null : entry.facts.asOf,
      source_keys: this.#sourcesOf(priced),
      price_page_url: priced.laid ? null : (PRICE_PAGES[entry.provider] ?? null),
      contract: contractOf(priced),
      contract_discount_percent: discountOf(priced),
      list_usd_per_mtok_exact: isAgreed(priced) ? listRate(asked) : null,
      untold_discount_percent: asked.discountPercent,
    });
    return { id, rate: found.rate };
  }

  get rates(): EvidenceRate[] {
    return [...this.#rates.values()];
  }

  get sources(): EvidencePriceSource[] {
    return [...this.#sources.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  #sourcesOf({ version, laid }: PricedModel): string[] {
    const keys = version.source.split(', ').filter((key) => key !== '');
    for (const key of keys) {
      const known = COLLECTIONS[key];
      const proof = laid?.statement.proof?.url ?? null;
      this.#sources.set(key, { key, name: known?.name ?? key, url: known?.url ?? proof });
    }
    return keys;
  }
}

function contractOf({ laid }: PricedModel): EvidenceRate['contract'] {
  return laid?.statement.proof ?? null;
}

const isAgreed = ({ laid }: PricedModel): boolean => laid?.statement.kind === 'contract';

function discountOf(priced: PricedModel): string | null {
  const terms = isAgreed(priced) ? priced.laid?.statement.terms : undefined;
  return terms && 'discountPercent' in terms
    ? decimalFromScaled(terms.discountPercent, PERCENT_DIGITS)
    : null;
}

function listRate({ list, model, tokenClass, circumstances }: Asked): string | null {
  const found = list.rate(model, tokenClass, circumstances);
  return found ? decimalFromPico(found.rate) : null;
}
