/**
 * Compares findings with the truth, dollar by dollar. The unit is a series-day: provider, account, model and UTC
 * day. The claimed dollars of a day in one direction are right up to the sum of the provider's mistakes on that
 * day in that direction, and false beyond it. A mistake of a kind outside the library makes no finding right that
 * names a kind. Right dollars go to the surest grade first, and within a grade to findings that name the mistake's
 * kind.
 */
import type { Provider } from '../../../domain/providers.js';
import type { Finding } from '../../../domain/reconciliation/engine/index.js';

import type { Grade } from '../../../domain/reconciliation/matching/cells.js';
import type { ChargePrices } from '../../../domain/reconciliation/matching/charges.js';
import { isViolation } from '../../../domain/reconciliation/taxonomy.js';
import type { GeneratedVisibility, Truth } from '../../generators/world.js';
import type { Judged, WorldFacts } from './judge.js';

/** The cause of mistakes outside the library (lab/generators/world.ts). */
export const NOT_IN_LIBRARY = 'not_in_library';

/** A day of a finding, with its right and false parts. Pico-dollars, all from zero. */
export interface SaidDay {
  finding: Finding;
  place: string;
  day: string;
  direction: 'over' | 'under';
  claimed: bigint;
  right: bigint;
  /** The part of `right` whose mistake has the finding's kind. */
  typed: bigint;
}

/** A day of a planted mistake, with the part that was found. */
export interface TrueDay {
  truth: Truth;
  place: string;
  day: string;
  direction: 'over' | 'under';
  identifiable: boolean;
  /** Identifiable, and no gate of HIGH is missing. */
  eligible: boolean;
  impact: bigint;
  /** By the grade of the finding. */
  found: Record<Grade, bigint>;
  /** Found under its own kind, from HIGH to LOW. */
  named: bigint;
}

export interface Matched {
  said: SaidDay[];
  truths: TrueDay[];
}

/** Inference profiles of Bedrock, which bill one model under several ids. */
const PROFILE = /^(?:global|us|eu|apac|jp|au|in)\./;

/**
 * Names places `provider model` by the model's name in the price book, so that aliases agree. Bedrock's profiles are
 * one model.
 */
export function placeNamer(
  prices: ChargePrices,
  atMicros: bigint,
): (provider: string, model: string) => string {
  const names = new Map<string, string>();
  return (provider, model) => {
    const key = `${provider}\n${model}`;
    let name = names.get(key);
    if (name === undefined) {
      const known = prices.list.find(provider as Provider, model, atMicros)?.entry.model ?? model;
      name = `${provider} ${provider === 'aws_bedrock' ? known.replace(PROFILE, '') : known}`;
      names.set(key, name);
    }
    return name;
  };
}

/** Compares every day of findings against the provider with every day of planted mistakes. */
export function matchTruth(world: WorldFacts, judged: Judged, visibility: GeneratedVisibility): Matched {
  const nameOf = placeNamer(judged.prices, BigInt(world.readAtSeconds) * 1_000_000n);
  const said = judged.findings.filter(accuses).flatMap((finding) => saidDays(finding, nameOf));
  const truths = world.truths
    .filter((truth) => truth.isViolation)
    .flatMap((truth) => trueDays(truth, nameOf, visibility));
  const byPlace = new Map<string, TrueDay[]>();
  for (const one of truths) {
    const key = dayPlace(one);
    const known = byPlace.get(key);
    if (known) known.push(one);
    else byPlace.set(key, [one]);
  }
  const surest = [...said].sort(
    (a, b) => GRADE_ORDER.indexOf(a.finding.grade) - GRADE_ORDER.indexOf(b.finding.grade),
  );
  for (const grade of GRADE_ORDER) {
    const ofGrade = surest.filter(({ finding }) => finding.grade === grade);
    for (const sameKind of [true, false])
      for (const one of ofGrade) award(one, byPlace.get(dayPlace(one)) ?? [], sameKind);
  }
  return { said, truths };
}

const GRADE_ORDER: readonly Grade[] = ['HIGH', 'MEDIUM', 'LOW', 'UNVERIFIED'];

/** Whether a finding claims a mistake of the provider, in either direction. */
export function accuses(finding: Finding): boolean {
  return isViolation(finding.kind) && finding.blame === 'provider';
}

const dayPlace = (one: { place: string; day: string; direction: string }) =>
  `${one.place}\n${one.day}\n${one.direction}`;

type Namer = (provider: string, model: string) => string;

function saidDays(finding: Finding, nameOf: Namer): SaidDay[] {
  const place = nameOf(finding.provider, finding.model);
  return finding.days
    .filter(({ impactPico }) => impactPico !== 0n)
    .map(({ day, impactPico }) => ({
      finding,
      place,
      day,
      direction: impactPico > 0n ? 'over' : 'under',
      claimed: impactPico > 0n ? impactPico : -impactPico,
      right: 0n,
      typed: 0n,
    }));
}

function trueDays(truth: Truth, nameOf: Namer, visibility: GeneratedVisibility): TrueDay[] {
  const place = nameOf(truth.provider, truth.model);
  return [...truth.impactByDay]
    .filter(([, impact]) => impact !== 0n)
    .map(([day, impact]) => ({
      truth,
      place,
      day,
      direction: impact > 0n ? 'over' : 'under',
      identifiable: truth.identifiableAt.has(visibility),
      eligible: truth.identifiableAt.has(visibility) && truth.missingGate === undefined,
      impact: impact > 0n ? impact : -impact,
      found: { HIGH: 0n, MEDIUM: 0n, LOW: 0n, UNVERIFIED: 0n },
      named: 0n,
    }));
}

/** Whether a finding names the mistake's kind, or an equally right one. */
function names({ kind }: Finding, truth: Truth): boolean {
  return truth.cause === kind || truth.otherNames.includes(kind);
}

/** Pico-dollars found of a mistake's day, from the highest grade down to `from`. */
export function foundOf(one: TrueDay, from: Grade = 'UNVERIFIED'): bigint {
  return GRADE_ORDER.slice(0, GRADE_ORDER.indexOf(from) + 1).reduce(
    (sum, grade) => sum + one.found[grade],
    0n,
  );
}

/** Assigns the remaining dollars of the day's mistakes to a finding's day, identifiable ones first. */
function award(said: SaidDay, candidates: readonly TrueDay[], sameKind: boolean): void {
  const { accountId } = said.finding;
  for (const identifiable of [true, false]) {
    for (const one of candidates) {
      if (one.identifiable !== identifiable || one.truth.cause === NOT_IN_LIBRARY) continue;
      if (accountId !== '' && accountId !== one.truth.accountId) continue;
      if (names(said.finding, one.truth) !== sameKind) continue;
      const left = one.impact - foundOf(one);
      const wanted = said.claimed - said.right;
      const given = left < wanted ? left : wanted;
      if (given <= 0n) continue;
      one.found[said.finding.grade] += given;
      said.right += given;
      if (!sameKind) continue;
      if (said.finding.grade !== 'UNVERIFIED') one.named += given;
      said.typed += given;
    }
  }
}
