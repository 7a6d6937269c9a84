import { absPico, PICO_PER_USD, type Pico } from '../../money.js';
import { type BucketReason, GRADES, type Grade, type Visibility } from './cells.js';

/** Probability from which a grade is given, before gates and visibility (docs/reconciliation.md). */
export const BANDS: readonly [Grade, number][] = [
  ['HIGH', 0.95],
  ['MEDIUM', 0.8],
  ['LOW', 0.5],
];

/** The best grade that each kind of bill allows. */
const VISIBILITY_CAPS: Record<Visibility, Grade> = { V0: 'LOW', V1: 'MEDIUM', V2: 'HIGH', V3: 'HIGH' };

export interface GradeEvidence {
  /** Null when unmatched. */
  probability: number | null;
  visibility: Visibility;
  provisional: boolean;
  /** What was billed is not known in dollars: at most LOW. */
  unconverted?: boolean;
  /** Gates of HIGH that can be judged before the hypotheses: missing one caps at MEDIUM, missing two at LOW. */
  gates: { quantityKnown: boolean; classesComplete: boolean; accountKnown: boolean };
}

/** The grade of a match. */
export function gradeOf(evidence: GradeEvidence): Grade {
  const { probability } = evidence;
  if (probability === null || evidence.provisional) return 'UNVERIFIED';
  const missing = Object.values(evidence.gates).filter((holds) => !holds).length;
  return lowerOf(gradeAt(probability, missing, evidence.visibility), evidence.unconverted ? 'LOW' : 'HIGH');
}

/** The band of a probability, lowered by how many gates of HIGH do not hold and by what the bill lets one see. */
export function gradeAt(probability: number, missingGates: number, visibility: Visibility): Grade {
  const band = BANDS.find(([, from]) => probability >= from)?.[0] ?? 'UNVERIFIED';
  return lowerOf(band, capAt(missingGates, visibility));
}

/** The best grade that is left where so many gates of HIGH do not hold and the bill lets one see so much. */
export function capAt(missingGates: number, visibility: Visibility): Grade {
  const byGates: Grade = missingGates === 0 ? 'HIGH' : missingGates === 1 ? 'MEDIUM' : 'LOW';
  return lowerOf(byGates, VISIBILITY_CAPS[visibility]);
}

/** The less certain of two grades. */
export function lowerOf(a: Grade, b: Grade): Grade {
  return GRADES.indexOf(a) > GRADES.indexOf(b) ? a : b;
}

/** The more certain of two grades. */
export function higherOf(a: Grade, b: Grade): Grade {
  return GRADES.indexOf(a) < GRADES.indexOf(b) ? a : b;
}

const TOLERANCE_MIN_PICO = PICO_PER_USD / 100n;
const TOLERANCE_DIVISOR = 1_000n;

/** Up to here billed and ours are equal: the largest of a cent, the rows' rounding, and 0.1 % of the billed amount. */
export function tolerancePico(billedPico: Pico, roundingPico: Pico): Pico {
  const share = absPico(billedPico) / TOLERANCE_DIVISOR;
  return [TOLERANCE_MIN_PICO, roundingPico, share].reduce((most, value) => (value > most ? value : most));
}

const FLAG_MIN_PICO = PICO_PER_USD;
const FLAG_DIVISOR = 50n;

/** From here a gap is worth somebody's look: the larger of a dollar and 2 % of the billed amount. */
export function flagThresholdPico(billedPico: Pico): Pico {
  const share = absPico(billedPico) / FLAG_DIVISOR;
  return share > FLAG_MIN_PICO ? share : FLAG_MIN_PICO;
}

const NEVER_FLAGGED: ReadonlySet<BucketReason> = new Set([
  'not_observable',
  'not_yet_observed',
  'free_allowance',
  'not_in_cost_report',
  'unconverted',
]);

/** Whether a reason explains a gap well enough that nobody has to look. */
export function isNeverFlagged(reason: BucketReason | null): boolean {
  return reason !== null && NEVER_FLAGGED.has(reason);
}
