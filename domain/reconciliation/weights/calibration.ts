/**
 * From the engine's probability of a claim to the share that is credited of such claims: a curve over all outcomes,
 * and one for each provider that is drawn towards it.
 */
import type { WeighedOutcome } from './outcome.js';
import { nonDecreasing } from './poolAdjacent.js';

/** p = 1 / (1 + e^−(slope · log-odds + shift)): Platt's curve. */
export interface PlattCurve {
  readonly method: 'platt';
  readonly slope: number;
  readonly shift: number;
}

/** Straight lines between points, p never falling. */
export interface IsotonicCurve {
  readonly method: 'isotonic';
  readonly points: readonly { readonly x: number; readonly p: number }[];
}

export type Curve = PlattCurve | IsotonicCurve;

export interface Calibrator {
  readonly outcomes: number;
  readonly curve: Curve;
  /** By provider; `share`: how much its own curve counts against the one of all. */
  readonly providers: Readonly<
    Record<string, { readonly outcomes: number; readonly share: number; readonly curve: Curve }>
  >;
}

/** An outcome with the probability that it is held against. */
export interface Judged extends WeighedOutcome {
  p: number;
}

export const SAME: PlattCurve = { method: 'platt', slope: 1, shift: 0 };

/** From so many outcomes on the curve takes any form. */
const ISOTONIC_FROM = 200;
/** Of a provider's own, when its curve counts as much as that of all. */
const SHRINK_OUTCOMES = 200;

export function learnCalibrator(judged: readonly Judged[]): Calibrator {
  const providers = [...new Set(judged.map((one) => one.provider))].sort();
  const curve = curveOf(judged, SAME);
  return {
    outcomes: judged.length,
    curve,
    providers: Object.fromEntries(
      providers.map((provider) => {
        const own = judged.filter((one) => one.provider === provider);
        const share = own.length / (own.length + SHRINK_OUTCOMES);
        return [
          provider,
          { outcomes: own.length, share, curve: curveOf(own, curve.method === 'platt' ? curve : SAME) },
        ];
      }),
    ),
  };
}

const curveOf = (judged: readonly Judged[], around: PlattCurve): Curve =>
  judged.length < ISOTONIC_FROM ? plattOf(judged, around) : isotonicOf(judged);

/**
 * Precision of the prior around the base curve, as 1 / variance: a standard deviation of a tenth in the shift, a fortieth in
 * the slope, because distant points change the slope most.
 */
const PRIOR_SHIFT = 1 / 0.1 ** 2;
const PRIOR_SLOPE = 1 / 0.025 ** 2;
const NEWTON_STEPS = 25;
const SLOPE_MIN = 0.05;

/** The most probable slope and shift, by Newton's method: the penalty makes it convex and the steps few. */
function plattOf(judged: readonly Judged[], around: PlattCurve): PlattCurve {
  if (judged.length === 0) return around;
  let { slope, shift } = around;
  for (let step = 0; step < NEWTON_STEPS; step += 1) {
    let [byShift, bySlope] = [PRIOR_SHIFT * (shift - around.shift), PRIOR_SLOPE * (slope - around.slope)];
    let [shiftShift, slopeSlope, both] = [PRIOR_SHIFT, PRIOR_SLOPE, 0];
    for (const { p, fraction, weight } of judged) {
      const z = logOdds(p);
      const says = logistic(slope * z + shift);
      const apart = weight * (says - fraction);
      const spread = weight * says * (1 - says);
      byShift += apart;
      bySlope += apart * z;
      shiftShift += spread;
      slopeSlope += spread * z * z;
      both += spread * z;
    }
    const determinant = shiftShift * slopeSlope - both * both;
    shift -= (byShift * slopeSlope - bySlope * both) / determinant;
    slope = Math.max(SLOPE_MIN, slope - (bySlope * shiftShift - byShift * both) / determinant);
  }
  return { method: 'platt', slope, shift };
}

/** Points that hold the curve where there are no outcomes: one of each, credited as often as it says. */
const ANCHORS: readonly number[] = [
  ...Array.from({ length: 19 }, (_, at) => (at + 1) / 20),
  0.98,
  0.99,
  0.999,
];

function isotonicOf(judged: readonly Judged[]): IsotonicCurve {
  const sums = new Map<number, { weight: number; credited: number }>();
  for (const { p, fraction, weight } of [
    ...ANCHORS.map((p) => ({ p, fraction: p, weight: 1 })),
    ...judged.map(({ p, fraction, weight }) => ({ p, fraction, weight })),
  ]) {
    const sum = sums.get(p) ?? { weight: 0, credited: 0 };
    sums.set(p, { weight: sum.weight + weight, credited: sum.credited + weight * fraction });
  }
  const places = [...sums].sort(([a], [b]) => a - b);
  const fitted = nonDecreasing(
    places.map(([, { weight, credited }]) => credited / weight),
    places.map(([, { weight }]) => weight),
  );
  const points = places.map(([x], at) => ({ x, p: fitted[at] ?? x }));
  // Of a level stretch its two ends are enough.
  return {
    method: 'isotonic',
    points: points.filter(({ p }, at) => points[at - 1]?.p !== p || points[at + 1]?.p !== p),
  };
}

/** The calibrated probability of a claim against this provider. Never falls where `p` rises. */
export function calibrated(p: number, provider: string, { curve, providers }: Calibrator): number {
  const all = along(curve, p);
  const own = providers[provider];
  return own ? (1 - own.share) * all + own.share * along(own.curve, p) : all;
}

function along(curve: Curve, p: number): number {
  if (curve.method === 'platt') {
    const isSame = curve.slope === 1 && curve.shift === 0;
    return isSame ? p : logistic(curve.slope * logOdds(p) + curve.shift);
  }
  const { points } = curve;
  const after = points.findIndex(({ x }) => x >= p);
  const [low, high] = [points[after - 1], points[after]];
  if (!high) return points.at(-1)?.p ?? p;
  if (!low) return high.p;
  return low.p + ((p - low.x) / (high.x - low.x)) * (high.p - low.p);
}

const ODDS_MAX = 12;
const logOdds = (p: number): number => Math.max(-ODDS_MAX, Math.min(ODDS_MAX, Math.log(p / (1 - p))));
const logistic = (z: number): number => 1 / (1 + Math.exp(-z));
