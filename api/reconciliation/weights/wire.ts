import { z } from 'zod';
import type { RescoredDraft, StoredWeightSet } from '../../../db/reconciliation/weightSets.js';
import { DISPUTE_TIERS } from '../../../domain/claims/financialSummary.js';
import { publicId } from '../../../domain/ids.js';
import { isoFromMicros } from '../../../domain/period.js';
import { BANDS } from '../../../domain/reconciliation/matching/classLines.js';
import { TAXONOMY_KINDS, VIOLATION_KINDS } from '../../../domain/reconciliation/taxonomy.js';
import type { Curve } from '../../../domain/reconciliation/weights/calibration.js';
import { detectorOf, type LearnedDetector } from '../../../domain/reconciliation/weights/detectors.js';
import { learnedSet } from '../../../domain/reconciliation/weights/learn.js';
import { type Outcome, weightAt } from '../../../domain/reconciliation/weights/outcome.js';
import { DEFAULT_THRESHOLDS } from '../../../domain/reconciliation/weights/thresholds.js';
import { DEFAULT_WEIGHTS } from '../../../domain/reconciliation/weights/weightSet.js';
import { offsetParameters, pageFields } from '../../paging.js';

export const WEIGHTS_PATH = '/api/v1/reconciliation/weights';

/** Pages through the outcomes; the answer contains everything else in full. */
export const weightsQuery = z.object(offsetParameters());

const score = z.number();

const detectorSchema = z
  .strictObject({
    kind: z.enum(VIOLATION_KINDS),
    outcomes: z.int().meta({ description: 'Of this kind, however old' }),
    credited: score.meta({ description: 'What they count, weighed by age: a partial credit counts in part' }),
    failed: score,
    prior: z.strictObject({ a: score, b: score, precision: score }).meta({
      description: 'Before any outcome: as if a credits and b refusals had been seen',
    }),
    precision: score.meta({ description: '(a + credited) / (a + b + credited + failed)' }),
    odds_factor: score.meta({
      description: 'What the odds of a finding of the kind are multiplied by; 1: nothing was learned',
    }),
    cap: score.nullable().meta({
      description:
        'No finding of the kind is surer: the 95 % upper bound of the precision, from the fifth outcome on',
    }),
  })
  .meta({ id: 'LearnedDetector' });

const levelSchema = z
  .strictObject({
    signal: z.string(),
    level: z.string(),
    bits_before: score,
    bits: score,
    credited: score.meta({ description: 'Under credited claims, weighed by age' }),
    denied: score.meta({
      description: 'Under denied claims, weighed by age and by how much the match can be to blame',
    }),
  })
  .meta({ id: 'LearnedLevel' });

const curveFields = {
  method: z.enum(['platt', 'isotonic']),
  slope: score.nullable(),
  shift: score.nullable(),
  points: z.array(z.strictObject({ x: score, p: score })),
};

const outcomeSchema = z
  .strictObject({
    claim_id: z.string(),
    claimed_type: z.enum(VIOLATION_KINDS),
    provider: z.string(),
    status: z.enum(['credit_issued', 'denied', 'partial']),
    violation_type: z.enum(TAXONOMY_KINDS).nullable(),
    claimed_cents: z.int(),
    fraction: score.meta({ description: 'Credited ÷ claimed' }),
    probability: score.meta({ description: 'What the engine thought of it, before anything was learned' }),
    levels: z.record(z.string(), z.string()).meta({ description: 'Of each signal the level of its match' }),
    weight: score.meta({ description: 'Half after each 180 days before the newest outcome' }),
    at: z.string(),
  })
  .meta({ id: 'ClaimOutcomeKind' });

const bands = { high: score, medium: score, low: score };

export const weightsResponse = z
  .strictObject({
    version: z.string().meta({ description: 'What findings name as weight_set', example: 'learned-7' }),
    base: z.string().meta({ description: 'The version that it was learned on top of' }),
    made_at: z.string().nullable().meta({ description: 'null: nothing was ever learned' }),
    learned_outcomes: z.int().meta({ description: 'Outcomes that this version was learned from' }),
    outcome_count: z
      .int()
      .meta({ description: 'Outcomes that there are; those beyond learned_outcomes are learned next' }),
    detectors: z.array(detectorSchema),
    levels: z.array(levelSchema),
    rivals: z
      .array(
        z.strictObject({
          provider: z.string(),
          kind: z.enum(TAXONOMY_KINDS),
          denials: score.meta({ description: 'Refusals that named it, weighed by age' }),
          prior_before: score,
          prior: score,
        }),
      )
      .meta({ description: 'Explanations that are more likely with a provider since it named them' }),
    calibrator: z.strictObject({
      outcomes: z.int(),
      ...curveFields,
      providers: z.array(
        z.strictObject({ provider: z.string(), outcomes: z.int(), share: score, ...curveFields }),
      ),
    }),
    thresholds: z.strictObject({ ...bands, default: z.strictObject(bands) }),
    rescored_drafts: z.array(
      z.strictObject({
        claim_id: z.string(),
        from: z.enum(DISPUTE_TIERS),
        to: z.enum(DISPUTE_TIERS),
        below_low: z.boolean().meta({
          description: 'Its present value is below LOW; there is no lower tier, so it stays LOW',
        }),
      }),
    ),
    outcomes: z.array(outcomeSchema),
    ...pageFields,
  })
  .meta({ id: 'LearnedWeights' });

type Shown = z.output<typeof weightsResponse>;

/** The answer except its page of outcomes. */
export function presentWeights(
  stored: StoredWeightSet | undefined,
  outcomeCount: number,
): Omit<Shown, 'outcomes' | 'count' | 'offset' | 'has_more'> {
  const learned = stored?.learned;
  const set = stored ? learnedSet(DEFAULT_WEIGHTS, stored.learned, stored.version) : DEFAULT_WEIGHTS;
  const low = BANDS.find(([grade]) => grade === 'LOW')?.[1] ?? 0;
  return {
    version: set.version,
    base: learned?.base ?? DEFAULT_WEIGHTS.version,
    made_at: stored ? isoFromMicros(stored.madeAtMicros) : null,
    learned_outcomes: learned?.outcomes ?? 0,
    outcome_count: outcomeCount,
    detectors: VIOLATION_KINDS.map((kind) =>
      presentDetector(kind, learned?.detectors[kind] ?? detectorOf(kind, [])),
    ),
    levels: Object.entries(DEFAULT_WEIGHTS.link).flatMap(([signal, levels]) =>
      Object.entries(levels).map(([level, before]) => {
        const counts = learned?.levels.counts[signal]?.[level];
        return {
          ...{ signal, level, bits_before: before, bits: set.link[signal]?.[level] ?? before },
          ...{ credited: counts?.credited ?? 0, denied: counts?.denied ?? 0 },
        };
      }),
    ),
    rivals: presentRivals(stored),
    calibrator: {
      outcomes: learned?.calibrator.outcomes ?? 0,
      ...presentCurve(learned?.calibrator.curve),
      providers: Object.entries(learned?.calibrator.providers ?? {})
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([provider, { outcomes, share, curve }]) => ({
          ...{ provider, outcomes, share },
          ...presentCurve(curve),
        })),
    },
    thresholds: {
      ...{ high: learned?.thresholds.high ?? DEFAULT_THRESHOLDS.high, low },
      medium: learned?.thresholds.medium ?? DEFAULT_THRESHOLDS.medium,
      default: { high: DEFAULT_THRESHOLDS.high, medium: DEFAULT_THRESHOLDS.medium, low },
    },
    rescored_drafts: (stored?.rescored ?? []).map(presentRescored),
  };
}

function presentDetector(
  kind: Shown['detectors'][number]['kind'],
  { outcomes, credited, failed, prior, priorMean, precision, oddsFactor, cap }: LearnedDetector,
): Shown['detectors'][number] {
  return {
    ...{ kind, outcomes, credited, failed },
    prior: { a: prior.a, b: prior.b, precision: priorMean },
    ...{ precision, odds_factor: oddsFactor, cap },
  };
}

function presentRivals(stored: StoredWeightSet | undefined): Shown['rivals'] {
  const sorted = <T>(of: Readonly<Record<string, T>>) =>
    Object.entries(of).sort(([a], [b]) => (a < b ? -1 : 1));
  return sorted(stored?.learned.rivals ?? {}).flatMap(([provider, kinds]) =>
    sorted(kinds).flatMap(([name, { denials, factor }]) => {
      const kind = TAXONOMY_KINDS.find((one) => one === name);
      if (!kind) return [];
      const before = DEFAULT_WEIGHTS.priors[kind] ?? DEFAULT_WEIGHTS.otherPrior;
      return [{ provider, kind, denials, prior_before: before, prior: before * factor }];
    }),
  );
}

function presentCurve(curve: Curve | undefined): Pick<Shown['calibrator'], keyof typeof curveFields> {
  if (curve?.method === 'isotonic')
    return {
      method: 'isotonic',
      slope: null,
      shift: null,
      points: curve.points.map(({ x, p }) => ({ x, p })),
    };
  return { method: 'platt', slope: curve?.slope ?? 1, shift: curve?.shift ?? 0, points: [] };
}

const presentRescored = ({
  claimId,
  from,
  to,
  belowLow,
}: RescoredDraft): Shown['rescored_drafts'][number] => ({
  claim_id: publicId('clm', claimId),
  from,
  to,
  below_low: belowLow,
});

export function presentOutcome(outcome: Outcome, newestMicros: bigint): Shown['outcomes'][number] {
  return {
    claim_id: publicId('clm', outcome.claimId),
    claimed_type: outcome.claimedType,
    provider: outcome.provider,
    status: outcome.status,
    violation_type: outcome.violationType,
    claimed_cents: Number(outcome.claimedCents),
    fraction: outcome.fraction,
    probability: outcome.rawProbability,
    levels: { ...outcome.levels },
    weight: weightAt(outcome, newestMicros),
    at: isoFromMicros(outcome.atMicros),
  };
}
