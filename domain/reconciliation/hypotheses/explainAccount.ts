/** An account's findings as a whole: what two series, or a series and a key, say together. */
import type { SuspectKey } from '../../billing/providerKeys.js';
import type { Provider } from '../../providers.js';
import type { ChargePrices } from '../charges.js';
import type { Finding, FindingDay, Gate, ResidualDay, SeriesExplanation } from '../inference/finding.js';
import type { WeightSet } from '../weights/weightSet.js';
import {
  byText,
  dayOfResidual,
  gradeOfAccountFinding,
  inOrder,
  keepDays,
  sumPico,
  visibilityOf,
} from './accountFindings.js';
import { findMovedUse, GIVES_WAY, type MovedUse } from './movedModels.js';
import { findSuspectUse } from './suspectUse.js';

export interface AccountInput {
  provider: Provider;
  accountId: string;
  /** One for each model; any order. */
  series: readonly SeriesExplanation[];
  /** Keys on the account's bill that nobody knows, or that were billed after their end. */
  suspectKeys: readonly SuspectKey[];
  prices: ChargePrices;
  weights: WeightSet;
}

/**
 * The account's final list of findings, in one order. A finding of a series gives way on the days that something over the
 * account explains better, so no dollar is found twice; what nothing here explains better stays as it is.
 */
export function explainAccount(input: AccountInput): Finding[] {
  const series = [...input.series].sort((a, b) => byText(a.model, b.model));
  let findings = series.flatMap((one) => one.findings);
  const over: Finding[] = [];
  for (const move of findMovedUse(input.provider, series, input.prices)) {
    const halves = halvesOf(move, findings, input);
    if (!halves) continue;
    findings = withoutDays(findings, move.to.model, daysOf(move));
    findings = withoutDays(findings, move.from.model, daysOf(move));
    over.push(...halves);
  }
  const suspect = findSuspectUse({ ...input, series }, findings, over);
  return inOrder([...suspect, ...over]);
}

const daysOf = (move: MovedUse): ReadonlySet<string> => new Set(move.days.map((one) => one.day));

/** Takes days out of the findings of a model that say little. */
function withoutDays(findings: readonly Finding[], model: string, days: ReadonlySet<string>): Finding[] {
  return findings.flatMap((finding) =>
    finding.model === model && GIVES_WAY.has(finding.kind)
      ? (keepDays(finding, (day) => !days.has(day)) ?? [])
      : [finding],
  );
}

/** Days that agree within this share agree as well as counts ever do. */
const CLOSE = 0.01;

/** What was billed too much on one model and too little on the other; undefined where both cost the same. */
function halvesOf(move: MovedUse, findings: readonly Finding[], input: AccountInput): Finding[] | undefined {
  const close = move.days.filter((one) => one.mismatch <= CLOSE).length;
  const probability = close >= 2 ? 0.97 : close === 1 || move.days.length > 1 ? 0.9 : 0.6;
  const to = halfOf(move, 'to', probability, findings, input);
  const from = halfOf(move, 'from', probability, findings, input);
  if (!to || !from) return undefined;
  return to.impactPico + from.impactPico === 0n ? undefined : [to, from];
}

function halfOf(
  move: MovedUse,
  side: 'to' | 'from',
  probability: number,
  findings: readonly Finding[],
  input: AccountInput,
): Finding | undefined {
  const series = move[side];
  const residuals = move.days.map((one) => (side === 'to' ? one.excess : one.lack));
  const before = findings.filter((one) => one.model === series.model && GIVES_WAY.has(one.kind));
  const days = residuals.flatMap((one) => dayIn(before, one, probability) ?? []);
  if (days.length === 0) return undefined;
  const impactPico = sumPico(days.map((one) => one.impactPico));
  if (impactPico === 0n) return undefined;
  const missing = gatesOf(before, days);
  const visibility = visibilityOf(series);
  const other = side === 'to' ? move.from.model : move.to.model;
  const isOver = impactPico > 0n;
  return {
    kind: 'model_misattribution',
    variant: side === 'to' ? `billed_for:${other}` : `billed_as:${other}`,
    direction: isOver ? 'overcharge' : 'undercharge',
    blame: 'provider',
    claimable: isOver,
    provider: input.provider,
    accountId: input.accountId,
    model: series.model,
    days,
    lines: residuals.flatMap((one) => one.lines ?? []),
    impactPico,
    recoverablePico: isOver ? impactPico : 0n,
    grade: gradeOfAccountFinding(probability, missing, visibility, false),
    probability,
    matchProbability: before[0]?.matchProbability ?? probability,
    visibility,
    provisional: false,
    missing,
    next: nextOf(before, probability),
    waterfall: [
      {
        signal: 'quantities of two models',
        level: `apart by at most ${percentOf(Math.max(...move.days.map((one) => one.mismatch)))} %`,
        bits: Math.log2(probability / (1 - probability)),
      },
    ],
    reason: reasonOf(side, series.model, other),
    advice: [
      'Name some of the calls: each answer says which model gave it. Ask for both models’ lines to be corrected together.',
    ],
    critical: false,
    weightSet: input.weights.version,
  };
}

const percentOf = (share: number): string => (share * 100).toFixed(1);

function reasonOf(side: 'to' | 'from', model: string, other: string): string {
  return side === 'to'
    ? `The bill counts more of ${model} than was used, and as much less of ${other} on the same days: calls of ${other} were billed as ${model}.`
    : `The bill counts less of ${model} than was used, and as much more of ${other} on the same days: calls of ${model} were billed as ${other}.`;
}

/** The day as a finding of the series has it already, else as its residual says. */
function dayIn(
  findings: readonly Finding[],
  residual: ResidualDay,
  probability: number,
): FindingDay | undefined {
  for (const finding of findings)
    for (const day of finding.days) if (day.day === residual.day) return { ...day, probability };
  return dayOfResidual(residual, probability);
}

/** What a finding over two series settles of the gates that the series' own findings lacked. */
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

function nextOf(before: readonly Finding[], probability: number): Finding['next'] {
  const [first] = before;
  return first ? { kind: first.kind, odds: probability / (1 - probability) } : null;
}
