/**
 * Findings held against the truth, dollar by dollar. The unit is a series-day: provider, account, model and UTC day. What
 * findings claim on it in one direction is right up to what the provider's mistakes of that day come to in the same
 * direction, and false beyond; a mistake of a kind that no library knows makes nothing right that names a kind. Right
 * dollars go to the surest grade first, and within a grade to findings that name the mistake's kind.
 */
import type { Provider } from '../../../domain/providers.js';
import type { Finding } from '../../../domain/reconciliation/inference/finding.js';
import type { Grade } from '../../../domain/reconciliation/matching/cells.js';
import type { ChargePrices } from '../../../domain/reconciliation/matching/charges.js';
import { isViolation } from '../../../domain/reconciliation/taxonomy.js';
import type { GeneratedVisibility, GeneratedWorld, Truth } from '../../generators/world.js';
import type { Judged } from './judge.js';

/** The cause of mistakes that no library knows (lab/generators/world.ts). */
export const NOT_IN_LIBRARY = 'not_in_library';

/** A day of a finding, and what is true of it. Pico-dollars, all from zero. */
export interface SaidDay {
  finding: Finding;
  place: string;
  day: string;
  direction: 'over' | 'under';
  claimed: bigint;
  right: bigint;
  /** The part of `right` whose mistake is of the finding's kind. */
  typed: bigint;
}

/** A day of a planted mistake, and how much of it was found. */
export interface TrueDay {
  truth: Truth;
  place: string;
  day: string;
  direction: 'over' | 'under';
  identifiable: boolean;
  impact: bigint;
  /** By the grade of what found it. */
  found: Record<Grade, bigint>;
  /** Found under its own name, from HIGH to LOW. */
  named: bigint;
}

export interface Matched {
  said: SaidDay[];
  truths: TrueDay[];
}

/** `provider model`, the model by the name that prices are kept under, so that aliases meet. */
export function placeNamer(
  prices: ChargePrices,
  atMicros: bigint,
): (provider: string, model: string) => string {
  const names = new Map<string, string>();
  return (provider, model) => {
    const key = `${provider}\n${model}`;
    let name = names.get(key);
    if (name === undefined) {
      name = `${provider} ${prices.list.find(provider as Provider, model, atMicros)?.entry.model ?? model}`;
      names.set(key, name);
    }
    return name;
  };
}

/** Every day of every finding that accuses the provider, against every day of every planted mistake. */
export function matchTruth(world: GeneratedWorld, judged: Judged, visibility: GeneratedVisibility): Matched {
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

/** A finding that says that the provider is wrong, to whoever's harm. */
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
      impact: impact > 0n ? impact : -impact,
      found: { HIGH: 0n, MEDIUM: 0n, LOW: 0n, UNVERIFIED: 0n },
      named: 0n,
    }));
}

/** Whether a finding calls a mistake by its name, or by one that is as right. */
function names({ kind }: Finding, truth: Truth): boolean {
  return truth.cause === kind || truth.otherNames.includes(kind);
}

/** Pico-dollars found of a mistake's day, at the grades from the surest to `from`. */
export function foundOf(one: TrueDay, from: Grade = 'UNVERIFIED'): bigint {
  return GRADE_ORDER.slice(0, GRADE_ORDER.indexOf(from) + 1).reduce(
    (sum, grade) => sum + one.found[grade],
    0n,
  );
}

/** Gives a finding's day what is left of the day's mistakes; what can be told is found before what cannot. */
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
