import { z } from 'zod';
import type { InvoicePlace } from '../../../db/invoices/comparedInvoices.js';
import type { MatchFinding, MatchRecord } from '../../../db/reconciliation/gapExplorer.js';
import { BILLED_CLASSES } from '../../../domain/billing/billedRow.js';
import { publicId } from '../../../domain/ids.js';
import { type Pico, usdNumberFromPico, usdNumberOrNull } from '../../../domain/money.js';
import { isoFromMicros, MICROS_PER_DAY } from '../../../domain/period.js';
import { DIRECTIONS } from '../../../domain/reconciliation/engine/index.js';

import { type ClassLine, GRADES, VISIBILITIES } from '../../../domain/reconciliation/matching/cells.js';
import {
  billedQuantityOf,
  describeMatch,
  MATCH_REASONS,
  reasonsOfMatch,
} from '../../../domain/reconciliation/matching/matchRecord.js';
import { FINDING_KINDS } from '../../../domain/reconciliation/taxonomy.js';
import { csvList } from '../../csv.js';
import { cursoredPageFields, pageParameters } from '../../paging.js';
import { filterParameter, instantParameter, wordParameter } from '../../query.js';

const MATCH_STATUSES = ['matched', 'partial', 'unmatched'] as const;

export const matchesQuery = z.object({
  confidence: wordParameter(GRADES, (word) => word.toUpperCase()).optional(),
  match_status: wordParameter(MATCH_STATUSES).optional(),
  provider: filterParameter
    .optional()
    .meta({ description: 'In any of its names; one that is not known finds nothing' }),
  provider_account_id: filterParameter.optional(),
  from: instantParameter
    .optional()
    .meta({ description: 'First usage_start; by default the 30 days up to the end' }),
  to: instantParameter.optional().meta({ description: 'Last usage_start, included; by default today' }),
  ...pageParameters,
});

const usd = z.number();

const lineSchema = z.strictObject({
  token_class: z.enum(BILLED_CLASSES),
  billed_quantity: z.number().nullable().meta({ description: 'Null where the bill gives none' }),
  observed_quantity: z.number(),
  billed_usd: usd,
  expected_usd: usd.nullable().meta({ description: 'The billed quantity at the agreed rates' }),
  observed_usd: usd.nullable().meta({ description: 'The observed quantity at the agreed rates' }),
  bill_rows: z.int(),
});

const findingSchema = z.strictObject({
  id: z.string(),
  kind: z.enum(FINDING_KINDS),
  direction: z.enum(DIRECTIONS),
  confidence: z.enum(GRADES),
  status: z.string(),
  impact_usd: usd.meta({ description: 'On this day alone: billed − what would have been right' }),
});

const matchSchema = z
  .strictObject({
    id: z.string().meta({
      description: 'The same in every run for the same account, model and day',
      example: 'mat_0199f3a2c4d57e3a8f00112233445566',
    }),
    provider: z.string(),
    provider_account_id: z
      .string()
      .meta({ description: 'Empty where calls of unknown account are compared with the sum over all' }),
    model: z.string(),
    match_status: z.enum(MATCH_STATUSES),
    confidence: z.enum(GRADES),
    confidence_score: z.number().nullable(),
    provider_cost_usd: usd,
    our_cost_usd: usd,
    delta_usd: usd.meta({ description: 'provider_cost_usd − our_cost_usd' }),
    quantity: z.number().nullable().meta({ description: 'As billed; null where the bill gives none' }),
    unit: z.enum(['tokens', 'requests']).nullable(),
    description: z.string(),
    usage_start: z.string(),
    usage_end: z.string().meta({ description: 'Where the day ends: the first moment after it' }),
    invoice_id: z.string().nullable().meta({ description: 'The uploaded invoice that charges for it' }),
    invoice_line_id: z
      .string()
      .nullable()
      .meta({ description: 'Of its lines the number of the one that charges the most of it' }),
    event_count: z.int().nullable().meta({
      description: 'Observed calls; null for days that were compared before calls were counted with them',
    }),
    reasons: z.array(z.enum(MATCH_REASONS)),
    dispute_id: z.string().nullable(),
    run_id: z.string(),
    created_at: z.string().meta({ description: 'When the day was last compared and published' }),
    provisional: z.boolean().meta({ description: 'The provider may still restate the day' }),
    visibility: z.enum(VISIBILITIES),
    gap_parts: z
      .strictObject({ rate_usd: usd, volume_usd: usd, own_pricing_usd: usd })
      .nullable()
      .meta({ description: 'delta_usd, split exactly; null where the bill has no quantities' }),
    lines: z.array(lineSchema).meta({ description: 'Class by class' }),
    waterfall: z
      .array(z.strictObject({ signal: z.string(), level: z.string(), bits: z.number() }))
      .meta({ description: 'What confidence_score is made of: evidence in bits' }),
    findings: z.array(findingSchema).meta({ description: 'What explains the day, the largest part first' }),
  })
  .meta({ id: 'Match' });

export const matchesResponse = z.strictObject({
  matches: z.array(matchSchema),
  ...cursoredPageFields,
  totals: z.strictObject({
    matched_usd: usd.meta({ description: 'For the whole selection, not the page: what calls explain' }),
    unmatched_usd: usd,
  }),
});

/** Facts about a match beside its bucket. */
interface MatchBeside {
  findings: readonly MatchFinding[];
  /** The dispute that contains the day. */
  disputeId: string | null;
  invoice: InvoicePlace | null;
}

export function presentMatch(record: MatchRecord, beside: MatchBeside): z.output<typeof matchSchema> {
  const { quantity, unit } = billedQuantityOf(record.lines);
  const { ratePico, volumePico, ownPricingPico } = record;
  return {
    id: publicId('mat', record.matchId),
    provider: record.provider,
    provider_account_id: record.accountId,
    model: record.model,
    match_status: record.matchStatus,
    confidence: record.grade,
    confidence_score: record.confidenceScore,
    provider_cost_usd: usdNumberFromPico(record.providerCostPico),
    our_cost_usd: usdNumberFromPico(record.ourCostPico),
    delta_usd: usdNumberFromPico(record.providerCostPico - record.ourCostPico),
    quantity: usdNumberOrNull(quantity),
    unit,
    description: describeMatch(record.model, record.lines),
    usage_start: isoFromMicros(record.bucketMicros),
    usage_end: isoFromMicros(record.bucketMicros + MICROS_PER_DAY),
    invoice_id: beside.invoice && publicId('inv', beside.invoice.invoiceId),
    invoice_line_id: beside.invoice && String(beside.invoice.line),
    event_count: record.eventCount,
    reasons: reasonsOfMatch(record),
    dispute_id: beside.disputeId && publicId('dsp', beside.disputeId),
    run_id: publicId('run', record.runId),
    created_at: isoFromMicros(record.publishedAtMicros),
    provisional: record.provisional,
    visibility: record.visibility,
    gap_parts:
      ratePico === null || volumePico === null || ownPricingPico === null
        ? null
        : {
            rate_usd: usdNumberFromPico(ratePico),
            volume_usd: usdNumberFromPico(volumePico),
            own_pricing_usd: usdNumberFromPico(ownPricingPico),
          },
    lines: record.lines.map(presentLine),
    waterfall: record.waterfall.map(({ signal, level, bits }) => ({ signal, level, bits })),
    findings: beside.findings.map(presentFinding),
  };
}

function presentLine(line: ClassLine): z.output<typeof lineSchema> {
  return {
    token_class: line.tokenClass,
    billed_quantity: usdNumberOrNull(line.billedQuantity),
    observed_quantity: usdNumberFromPico(line.observedQuantity),
    billed_usd: usdNumberFromPico(line.billedPico),
    expected_usd: usdNumberOrNull(line.expectedOfBilledPico),
    observed_usd: usdNumberOrNull(line.expectedOfObservedPico),
    bill_rows: line.rows,
  };
}

function presentFinding(finding: MatchFinding): z.output<typeof findingSchema> {
  return {
    id: publicId('fnd', finding.findingId),
    kind: finding.kind,
    direction: finding.direction,
    confidence: finding.grade,
    status: finding.status,
    impact_usd: usdNumberFromPico(finding.impactPico),
  };
}

export const presentTotals = ({
  matchedPico,
  unmatchedPico,
}: {
  matchedPico: Pico;
  unmatchedPico: Pico;
}) => ({
  matched_usd: usdNumberFromPico(matchedPico),
  unmatched_usd: usdNumberFromPico(unmatchedPico),
});

/** The list as CSV. */
export const matchesCsv = csvList('matches', 'matches', matchSchema);
