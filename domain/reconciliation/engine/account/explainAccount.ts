/** An account's findings as a whole: joint evidence of two series, or of a series and a key. */

import type { SuspectKey } from '../../../billing/providerKeys.js';
import { groupBy } from '../../../groupBy.js';
import type { Provider } from '../../../providers.js';
import type { ChargePrices } from '../../matching/charges.js';
import { gradeAt } from '../../matching/classLines.js';
import type { WeightSet } from '../../weights/weightSet.js';
import { AGREEMENT_MAX, BY_CHANCE, CLOSE, NEARLY_SURE, TRIED } from '../calibration.js';
import type { Finding, FindingDay, Gate, ResidualDay, SeriesExplanation } from '../series/finding.js';
import { bitsOf, calibrated, calibrationSteps, gradedAs } from '../series/gates.js';
import {
  addedLines,
  byText,
  footed,
  inOrder,
  keepDays,
  leastOf,
  placeOf,
  sumPico,
} from './accountFindings.js';
import { applyLearning } from './learned.js';
import {
  dayOfMove,
  findMovedUse,
  GIVES_WAY,
  isCounted,
  linesOfMove,
  type MovedDay,
  type MovedUse,
  WHOSE,
  whoseIs,
} from './movedModels.js';
import { findSuspectUse } from './suspectUse.js';

export interface AccountInput {
  provider: Provider;
  accountId: string;
  /** One for each model; any order. */
  series: readonly SeriesExplanation[];
  /** Keys on the account's bill that are unknown, or that were billed after their end. */
  suspectKeys: readonly SuspectKey[];
  prices: ChargePrices;
  weights: WeightSet;
}

/**
 * The account's final list of findings, in one order. A finding of a series yields on the days that something over the
 * account explains better, so no dollar is found twice; what nothing here explains better stays as it is.
 */
export function explainAccount(input: AccountInput): Finding[] {
  const series = [...input.series].sort((a, b) => byText(a.model, b.model));
  let findings = series.flatMap((one) => one.findings);
  const over: Finding[] = [];
  for (const found of findMovedUse(input.provider, series, input.prices)) {
    const move = withoutTold(found, findings);
    const said = byRecord(move).flatMap((part) => findingOf(part, agreementOf(move), findings, input) ?? []);
    if (said.length === 0) continue;
    for (const [half, model] of halvesOf(move)) findings = withoutDays(findings, model, move.days.map(half));
    findings = withoutRates(findings, move);
    over.push(...said);
  }
  const suspect = findSuspectUse({ ...input, series }, findings, over);
  return applyLearning(inOrder([...suspect, ...over]), input.weights);
}

type HalfOf = (moved: MovedDay) => ResidualDay;

const halvesOf = ({ from, to }: MovedUse): (readonly [half: HalfOf, model: string])[] => [
  [({ excess }) => excess, to.model],
  [({ lack }) => lack, from.model],
];

/**
 * With amounts alone, a finding of a series and a move are about the same dollars: a move that is nearly sure takes
 * them, any other leaves the days that have a finding already.
 */
function withoutTold(move: MovedUse, findings: readonly Finding[]): MovedUse {
  if (agreementOf(move) >= NEARLY_SURE) return move;
  const told = new Set(
    findings
      .filter((one) => !GIVES_WAY.has(one.kind))
      .flatMap(({ model, days }) => days.map((one) => placeOf(model, one.day))),
  );
  const isFree = (moved: MovedDay) =>
    halvesOf(move).every(([half, model]) => isCounted(half(moved)) || !told.has(placeOf(model, moved.day)));
  return { ...move, days: move.days.filter(isFree) };
}

/** Takes days out of the weak findings of a model and, where the bill has amounts alone, out of all. */
function withoutDays(
  findings: readonly Finding[],
  model: string,
  residuals: readonly ResidualDay[],
): Finding[] {
  const days = new Set(residuals.map((one) => one.day));
  const uncounted = new Set(residuals.filter((one) => !isCounted(one)).map((one) => one.day));
  return findings.flatMap((finding) => {
    if (finding.model !== model) return [finding];
    const taken = GIVES_WAY.has(finding.kind) ? days : uncounted;
    return keepDays(finding, (day) => !taken.has(day)) ?? [];
  });
}

/** One move by the record that shows what was moved: days that lack it leave the others what HIGH needs. */
function byRecord(move: MovedUse): MovedUse[] {
  return [...groupBy(move.days, (one) => one.shownBy).values()].map((days) => ({ ...move, days }));
}

/**
 * Where the bill is what the model's own calls and the moved ones cost, no rate of it is wrong: a line of mixed use only
 * seemed to be. Terms that are not entered hold beside a move.
 */
function withoutRates(findings: readonly Finding[], { to, days }: MovedUse): Finding[] {
  const right = new Set(days.flatMap(({ day, shownBy }) => (shownBy === 'calls' ? [day] : [])));
  return findings.flatMap((finding) =>
    finding.model === to.model && finding.kind !== 'contract_terms'
      ? (keepDays(finding, (day) => !right.has(day)) ?? [])
      : [finding],
  );
}

/**
 * The cost of the moved calls as the billed model, less their cost as the used model;
 * undefined where both cost the same.
 */
function findingOf(
  move: MovedUse,
  base: number,
  findings: readonly Finding[],
  input: AccountInput,
): Finding | undefined {
  const whose = whoseIs(move);
  const likely = Math.min(base, WHOSE[whose].probability);
  const before = findings.filter((one) => one.model === move.to.model && GIVES_WAY.has(one.kind));
  const moved = move.days.flatMap((one) => {
    const day = dayOfMove(one, likely);
    return day ? [{ day, lines: linesOfMove(one, day.impactPico) }] : [];
  });
  const days = moved.map(({ day }) => day);
  const impactPico = sumPico(days.map((one) => one.impactPico));
  if (impactPico === 0n) return undefined;
  const visibility = leastOf(move.days.map((one) => one.excess.visibility));
  const hasCounts = move.days.every(({ excess, lack }) => isCounted(excess) && isCounted(lack));
  const areSeen = move.days.every(({ shownBy }) => shownBy === 'calls');
  const settled = gatesOf(before, days).filter((gate) => !areSeen || gate !== 'coverage_or_sealed_scope');
  const lacking: readonly (readonly [Gate, boolean])[] = [
    ['quantity_present', !hasCounts && !settled.includes('quantity_present')],
    ['residual_within_tolerance', hasCounts && move.days.some(({ shownBy }) => shownBy === null)],
    ['evidence_needed', whose !== 'answered'],
  ];
  const missing = [...settled, ...lacking.flatMap(([gate, is]) => (is ? [gate] : []))];
  const says = WHOSE[whose].says(move.from.model, move.to.model);
  const of = { blame: says.blame, missing, visibility };
  const probability = calibrated(likely, of);
  const waterfall = [
    {
      signal: hasCounts ? 'quantities of two models' : 'amounts of two models',
      level: `apart by at most ${percentOf(Math.max(...move.days.map((one) => one.mismatch)))} %`,
      bits: bitsOf(base),
    },
    { signal: 'model of the events', level: WHOSE[whose].level, bits: bitsOf(likely) - bitsOf(base) },
    ...calibrationSteps(likely, of),
  ];
  const isOver = impactPico > 0n;
  const isClaimable = isOver && whose !== 'lasting';
  return {
    ...says,
    direction: isOver ? 'overcharge' : 'undercharge',
    claimable: isClaimable,
    provider: input.provider,
    accountId: input.accountId,
    model: move.to.model,
    days,
    lines: footed(addedLines(moved.flatMap(({ lines }) => lines)), impactPico),
    impactPico,
    recoverablePico: isClaimable ? impactPico : 0n,
    grade: gradeAt(gradedAs(probability, { missing, waterfall }), missing.length, visibility),
    probability,
    matchProbability: before[0]?.matchProbability ?? likely,
    visibility,
    provisional: false,
    missing,
    next: { kind: WHOSE[whose].rival, odds: likely / (1 - likely) },
    waterfall,
    critical: false,
    weightSet: input.weights.version,
  };
}

/** Each day on which the halves agree is another wonder if they are none. */
function agreementOf({ days }: MovedUse): number {
  const close = days.filter((one) => one.mismatch <= CLOSE).length;
  const odds = (BY_CHANCE.close ** -close * BY_CHANCE.far ** -(days.length - close)) / TRIED;
  return Math.min(AGREEMENT_MAX, odds / (1 + odds));
}

const percentOf = (share: number): string => (share * 100).toFixed(1);

/** The gates that a finding over two series satisfies and the series' own findings lacked. */
const SETTLED: ReadonlySet<Gate> = new Set([
  'residual_within_tolerance',
  'odds_against_next',
  'evidence_needed',
]);

function gatesOf(before: readonly Finding[], days: readonly FindingDay[]): Gate[] {
  const wanted = new Set(days.map((one) => one.day));
  const concerned = before.filter((finding) => finding.days.some((one) => wanted.has(one.day)));
  if (concerned.length === 0) return ['coverage_or_sealed_scope'];
  return [...new Set(concerned.flatMap((finding) => finding.missing))]
    .filter((gate) => !SETTLED.has(gate))
    .sort();
}
