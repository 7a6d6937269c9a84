/** The sums of judged worlds, which add up over seeds and from which the metrics follow. */
import type { Grade } from '../../../domain/reconciliation/matching/cells.js';
import type { GeneratedVisibility } from '../../generators/world.js';
import { applyGapRule, BASELINE_PERCENTS, type RuleTally } from './gapRule.js';
import { daysOf, type Judged, type WorldFacts } from './judge.js';
import type { FindingDayOutcome } from './leaveOut.js';
import { foundOf, type Matched, matchTruth, NOT_IN_LIBRARY, placeNamer } from './matchTruth.js';

/** Dollars of one cause of planted mistakes. */
export interface CauseTally {
  planted: number;
  identifiable: number;
  eligible: number;
  foundHigh: number;
  found: number;
  named: number;
}

/** Sums in dollars, from zero. `over`: overcharges; `under`: undercharges. */
export interface Tally {
  worlds: number;
  spend: number;
  runMs: number;
  seriesDays: number;
  /** Claimed, and below right dollars of overcharges by grade. */
  claimed: Record<Grade, number>;
  right: Record<Grade, number>;
  /**
   * Dollars of graded findings (HIGH to LOW) in either direction: right ones, and below right ones under the right
   * kind.
   */
  typedOf: number;
  typed: number;
  /** Graded findings with at least half of their dollars right, and below those that also name the kind. */
  trueFindings: number;
  namedFindings: number;
  identifiable: number;
  found: number;
  /** The identifiable dollars that can pass the gates of HIGH, and below the part found at HIGH. */
  eligible: number;
  foundHigh: number;
  under: { claimed: number; right: number; identifiable: number; found: number };
  /** Claimed from HIGH to LOW on series-days without a mistake of the provider in that direction. */
  onClean: number;
  /** `onClean` by the planted benign cause; '': none was planted. */
  onCleanByCause: Map<string, number>;
  unexplained: number;
  /** Dollars of mistakes outside the library, and below the part claimed under some kind. */
  unknown: number;
  unknownClaimed: number;
  /** One for each day of each finding against the provider. */
  predictions: FindingDayOutcome[];
  accusations: Record<Grade, number>;
  causes: Map<string, CauseTally>;
  rules: Map<number, RuleTally>;
}

const usd = (pico: bigint) => Number(pico) / 1e12;
const byGrade = (): Record<Grade, number> => ({ HIGH: 0, MEDIUM: 0, LOW: 0, UNVERIFIED: 0 });

export function emptyTally(): Tally {
  return {
    worlds: 0,
    spend: 0,
    runMs: 0,
    seriesDays: 0,
    claimed: byGrade(),
    right: byGrade(),
    typedOf: 0,
    typed: 0,
    trueFindings: 0,
    namedFindings: 0,
    identifiable: 0,
    found: 0,
    eligible: 0,
    foundHigh: 0,
    under: { claimed: 0, right: 0, identifiable: 0, found: 0 },
    onClean: 0,
    onCleanByCause: new Map(),
    unexplained: 0,
    unknown: 0,
    unknownClaimed: 0,
    predictions: [],
    accusations: byGrade(),
    causes: new Map(),
    rules: new Map(BASELINE_PERCENTS.map((percent) => [percent, { claimed: 0, right: 0, found: 0 }])),
  };
}

/** The sum of what the ablation compares: dollars and outcomes against the provider, without causes and rules of thumb. */
export function addTally(sum: Tally, one: Tally): void {
  for (const name of [
    'spend',
    'typedOf',
    'typed',
    'identifiable',
    'found',
    'eligible',
    'foundHigh',
    'onClean',
  ] as const)
    sum[name] += one[name];
  for (const name of ['claimed', 'right', 'accusations'] as const)
    for (const grade of Object.keys(one[name]) as Grade[]) sum[name][grade] += one[name][grade];
  sum.worlds += one.worlds;
  for (const prediction of one.predictions) sum.predictions.push(prediction);
}

/** Adds a judged world; returns the comparison with the truth for a closer look. */
export function addWorld(
  tally: Tally,
  world: WorldFacts,
  judged: Judged,
  visibility: GeneratedVisibility,
): Matched {
  const matched = matchTruth(world, judged, visibility);
  tally.worlds += 1;
  tally.spend += usd(world.spendPico);
  tally.runMs += judged.runMs;
  tally.seriesDays += judged.explanations.reduce((sum, { days }) => sum + days.length, 0);
  addSaid(tally, world, judged, matched);
  addFindings(tally, judged, matched);
  addTruths(tally, matched);
  for (const { days } of judged.explanations)
    for (const { unexplainedPico } of days) tally.unexplained += Math.abs(usd(unexplainedPico));
  for (const [percent, rule] of tally.rules) applyGapRule(rule, percent, world, judged, matched);
  return matched;
}

function addSaid(tally: Tally, world: WorldFacts, judged: Judged, matched: Matched): void {
  const dirty = mistakenPlaces(matched, () => true);
  const unknown = mistakenPlaces(matched, (cause) => cause === NOT_IN_LIBRARY);
  const benign = benignPlaces(world, judged);
  for (const one of matched.said) {
    const { grade, probability, accountId } = one.finding;
    const isRight = one.typed * 2n >= one.claimed;
    tally.predictions.push({ finding: one.finding, probability, outcome: isRight ? 1 : 0 });
    if (one.direction === 'over') {
      tally.claimed[grade] += usd(one.claimed);
      tally.right[grade] += usd(one.right);
    }
    if (grade === 'UNVERIFIED') continue;
    if (one.direction === 'under') {
      tally.under.claimed += usd(one.claimed);
      tally.under.right += usd(one.right);
    }
    tally.typedOf += usd(one.right);
    tally.typed += usd(one.typed);
    const key = placeKey(accountId, one);
    if (unknown.has(key)) tally.unknownClaimed += usd(one.claimed - one.right);
    if (dirty.has(key)) continue;
    tally.onClean += usd(one.claimed);
    const cause = benign.get(`${one.place}\n${one.day}`) ?? '';
    tally.onCleanByCause.set(cause, (tally.onCleanByCause.get(cause) ?? 0) + usd(one.claimed));
  }
}

const placeKey = (accountId: string, one: { place: string; day: string; direction: string }) =>
  `${accountId}\n${one.place}\n${one.day}\n${one.direction}`;

/** Series-days with a mistake of the provider; also without an account, for findings that have none. */
function mistakenPlaces({ truths }: Matched, isMeant: (cause: string) => boolean): Set<string> {
  const meant = truths.filter(({ truth }) => isMeant(truth.cause));
  return new Set(meant.flatMap((one) => [placeKey(one.truth.accountId, one), placeKey('', one)]));
}

/** Benign causes by series and day. A cause without separate dollars applies to all days. */
function benignPlaces(world: WorldFacts, judged: Judged): Map<string, string> {
  const nameOf = placeNamer(judged.prices, BigInt(world.readAtSeconds) * 1_000_000n);
  const places = new Map<string, string>();
  for (const truth of world.truths) {
    if (truth.isViolation) continue;
    const days = truth.impactByDay.size > 0 ? [...truth.impactByDay.keys()] : daysOf(world);
    for (const day of days) places.set(`${nameOf(truth.provider, truth.model)}\n${day}`, truth.cause);
  }
  return places;
}

function addFindings(tally: Tally, judged: Judged, matched: Matched): void {
  const sums = new Map<object, { claimed: bigint; right: bigint; typed: bigint }>();
  for (const one of matched.said) {
    const sum = sums.get(one.finding) ?? { claimed: 0n, right: 0n, typed: 0n };
    sum.claimed += one.claimed;
    sum.right += one.right;
    sum.typed += one.typed;
    sums.set(one.finding, sum);
  }
  for (const finding of judged.findings) {
    const sum = sums.get(finding);
    if (!sum) continue;
    tally.accusations[finding.grade] += 1;
    if (finding.grade === 'UNVERIFIED' || sum.right * 2n < sum.claimed) continue;
    tally.trueFindings += 1;
    if (sum.typed * 2n >= sum.right) tally.namedFindings += 1;
  }
}

const emptyCause = (): CauseTally => ({
  planted: 0,
  identifiable: 0,
  eligible: 0,
  foundHigh: 0,
  found: 0,
  named: 0,
});

function addTruths(tally: Tally, matched: Matched): void {
  for (const one of matched.truths) {
    const name = one.direction === 'over' ? one.truth.cause : `${one.truth.cause} (under)`;
    const cause = tally.causes.get(name) ?? emptyCause();
    tally.causes.set(name, cause);
    const impact = usd(one.impact);
    const high = usd(foundOf(one, 'HIGH'));
    const found = usd(foundOf(one, 'LOW'));
    cause.planted += impact;
    cause.foundHigh += high;
    cause.found += found;
    cause.named += usd(one.named);
    if (one.truth.cause === NOT_IN_LIBRARY) {
      tally.unknown += impact;
      continue;
    }
    if (!one.identifiable) continue;
    cause.identifiable += impact;
    if (one.eligible) cause.eligible += impact;
    if (one.direction === 'under') {
      tally.under.identifiable += impact;
      tally.under.found += found;
      continue;
    }
    tally.identifiable += impact;
    tally.found += found;
    if (!one.eligible) continue;
    tally.eligible += impact;
    tally.foundHigh += high;
  }
}
