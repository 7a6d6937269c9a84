import { absPico, type Pico } from '../../money.js';
import { isTokenClass } from '../audit/dayRates.js';
import { BUCKET_REASONS, type BucketReason, type ClassLine, type MatchStatus } from './cells.js';
import { tolerancePico } from './classLines.js';
import { ALL_ACCOUNTS } from './matchDay.js';

/** The reasons of a match record: the reason of its bucket, and those that follow from its figures. */
export const MATCH_REASONS = [
  ...BUCKET_REASONS,
  'no_calls',
  'provisional',
  'account_unknown',
  'no_quantities',
  'rate_differs',
  'quantities_differ',
  'own_pricing_differs',
] as const;
export type MatchReason = (typeof MATCH_REASONS)[number];

/** The figures that determine the reasons of a record. */
export interface MatchFigures {
  accountId: string;
  matchStatus: MatchStatus;
  provisional: boolean;
  reason: BucketReason | null;
  eventCount: number | null;
  providerCostPico: Pico;
  /** All three null: the bill does not allow the split of the gap. */
  ratePico: Pico | null;
  volumePico: Pico | null;
  ownPricingPico: Pico | null;
}

/** Every applicable reason, the bucket's own first; a part of the gap counts if it exceeds the tolerance. */
export function reasonsOfMatch(figures: MatchFigures): MatchReason[] {
  const { ratePico, volumePico, ownPricingPico, providerCostPico, matchStatus } = figures;
  const tolerance = tolerancePico(providerCostPico, 0n);
  const differs = (part: Pico | null) => part !== null && absPico(part) > tolerance;
  const isPartial = matchStatus === 'partial';
  const holds: readonly [MatchReason, boolean][] = [
    ['no_calls', matchStatus === 'unmatched' && figures.reason === null && figures.eventCount === 0],
    ['provisional', figures.provisional],
    ['account_unknown', figures.accountId === ALL_ACCOUNTS],
    ['no_quantities', isPartial && ratePico === null],
    ['rate_differs', isPartial && differs(ratePico)],
    ['quantities_differ', isPartial && differs(volumePico)],
    ['own_pricing_differs', isPartial && differs(ownPricingPico)],
  ];
  return [
    ...(figures.reason === null ? [] : [figures.reason]),
    ...holds.flatMap(([reason, does]) => (does ? [reason] : [])),
  ];
}

/** A billed quantity and its unit; both null: the bill has none. */
export interface BilledQuantity {
  /** In 1e-12 units. */
  quantity: bigint | null;
  unit: 'tokens' | 'requests' | null;
}

/** The charged quantity of a bucket's lines: tokens of all classes, else calls. */
export function billedQuantityOf(lines: readonly ClassLine[]): BilledQuantity {
  const tokens = lines.filter((line) => isTokenClass(line.tokenClass));
  const counted = tokens.length > 0 ? tokens : lines.filter((line) => line.tokenClass === 'requests');
  const paid = lines.filter((line) => line.tokenClass === 'other' && line.billedPico !== 0n);
  if (counted.length === 0 || paid.length > 0) return { quantity: null, unit: null };
  let quantity = 0n;
  for (const line of counted) {
    if (line.billedQuantity === null) return { quantity: null, unit: null };
    quantity += line.billedQuantity;
  }
  return { quantity, unit: tokens.length > 0 ? 'tokens' : 'requests' };
}

/** A record's description: the model and the charged classes, or the bill's own label. */
export function describeMatch(model: string, lines: readonly ClassLine[]): string {
  const charged = lines.filter((line) => line.rows > 0).map((line) => line.tokenClass);
  if (charged.length === 0) return `${model}: calls without a charge`;
  const named = charged.filter((name) => name !== 'other');
  return named.length === 0 ? model : `${model}: ${named.join(', ')}`;
}
