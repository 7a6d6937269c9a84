import { BILLED_CLASSES, type BilledClass } from '../../billing/billedRow.js';
import { compare } from '../../compare.js';
import { absPico, type Pico } from '../../money.js';
import type { DayCharge } from '../matching/charges.js';
import { billedRate } from '../matching/classLines.js';
import type { RateHint, UnjudgedReason } from './judgeMeter.js';

/** Charges of one label that cannot be judged from the bill alone, with the reason. */
export interface UnjudgedLine {
  accountId: string;
  label: string;
  tokenClass: BilledClass;
  reason: UnjudgedReason;
  firstDay: string;
  lastDay: string;
  days: number;
  /** null: some of the charges have no quantity. */
  quantity: bigint | null;
  billedPico: Pico;
}

export interface AuditTotals {
  billedPico: Pico;
  /** Billed = judged + not judged; judged = agreed + difference. */
  judgedPico: Pico;
  notJudgedPico: Pico;
  agreedPico: Pico;
  /** Amounts above the agreed rate (from 0), amounts below it (to 0), and the rounding of right charges. */
  abovePico: Pico;
  belowPico: Pico;
  roundingPico: Pico;
}

export interface AuditResult {
  /** Number of days that the bill covers, with or without charges. */
  days: number;
  /** Lines charged at another than the agreed rate, largest amount first. */
  differences: AuditLine[];
  /** Number and sums of the lines above the limit, so that the totals add up. */
  omitted: { lines: number; billedPico: Pico; agreedPico: Pico };
  /** Lines charged as agreed: one for each place and rate, by account, label and class. */
  asAgreed: AuditLine[];
  notJudged: UnjudgedLine[];
  totals: AuditTotals;
}

/** Maximum lines of differences in a result; a bill exceeds it only if it is wrong in a different way every day. */
export const AUDIT_LINES_MAX = 5_000;
/** Maximum separate labels of charges that cannot be judged; the others are summed under OTHER_LABELS. */
const UNJUDGED_LABELS_MAX = 1_000;
export const OTHER_LABELS = '(other labels)';

/** Audits a provider's bills, days in order. Memory grows with models and classes, not with days. */
export class BillAudit {
  readonly #linesMax: number;
  readonly #open = new Map<string, OpenLine>();
  #closed: AuditLine[] = [];
  readonly #asAgreed = new Map<string, AuditLine>();
  readonly #notJudged = new Map<string, UnjudgedLine>();
  readonly #omitted = { lines: 0, billedPico: 0n, agreedPico: 0n };
  readonly #totals: AuditTotals = {
    billedPico: 0n,
    judgedPico: 0n,
    notJudgedPico: 0n,
    agreedPico: 0n,
    abovePico: 0n,
    belowPico: 0n,
    roundingPico: 0n,
  };
  #days = 0;

  constructor(linesMax: number = AUDIT_LINES_MAX) {
    this.#linesMax = linesMax;
  }

  addDay(day: string, charges: readonly DayCharge[]): void {
    this.#days += 1;
    for (const charge of charges) {
      this.#totals.billedPico += charge.billedPico;
      const { agreedPico, verdict } = charge;
      if (verdict === 'differs' && agreedPico !== null) this.#addDifference(day, { ...charge, agreedPico });
      else if (verdict === 'as_agreed' && agreedPico !== null) this.#addRight(day, { ...charge, agreedPico });
      else if (verdict !== 'differs' && verdict !== 'as_agreed') this.#addUnjudged(day, charge, verdict);
    }
  }

  result(): AuditResult {
    const differences = [...this.#closed, ...[...this.#open.values()].map(({ line }) => line)].sort(byAmount);
    const shown = differences.slice(0, this.#linesMax);
    const omitted = { ...this.#omitted };
    for (const line of differences.slice(this.#linesMax)) omit(omitted, line);
    return {
      days: this.#days,
      differences: shown,
      omitted,
      asAgreed: [...this.#asAgreed.values()].sort((a, b) => byPlace(a, b) || compare(a.firstDay, b.firstDay)),
      notJudged: [...this.#notJudged.values()].sort(
        (a, b) => compare(absPico(b.billedPico), absPico(a.billedPico)) || byPlace(a, b),
      ),
      totals: { ...this.#totals },
    };
  }

  #addDifference(day: string, charge: JudgedCharge): void {
    this.#addJudged(charge);
    const difference = charge.billedPico - charge.agreedPico;
    if (difference > 0n) this.#totals.abovePico += difference;
    else this.#totals.belowPico += difference;
    const key = placeKey(charge);
    const open = this.#open.get(key);
    if (open && continueLine(open, day, charge)) return;
    if (open) this.#close(open.line);
    this.#open.set(key, openLine(day, charge));
  }

  /** A day of the same place at the agreed rate ends the error; a day without such a charge does not. */
  #addRight(day: string, charge: JudgedCharge): void {
    this.#addJudged(charge);
    this.#totals.roundingPico += charge.billedPico - charge.agreedPico;
    const key = placeKey(charge);
    const open = this.#open.get(key);
    if (open) {
      this.#close(open.line);
      this.#open.delete(key);
    }
    // A changed price starts a new line, so that a line has one rate.
    const priced = [key, charge.agreedRate, charge.listRate].join('\n');
    const known = this.#asAgreed.get(priced);
    if (known) extendLine(known, day, charge);
    else this.#asAgreed.set(priced, lineOf(day, charge));
  }

  #addJudged(charge: JudgedCharge): void {
    this.#totals.judgedPico += charge.billedPico;
    this.#totals.agreedPico += charge.agreedPico;
  }

  #addUnjudged(day: string, charge: DayCharge, reason: UnjudgedReason): void {
    this.#totals.notJudgedPico += charge.billedPico;
    const keyOf = (label: string) => [charge.accountId, label, charge.tokenClass, reason].join('\n');
    const isFull = this.#notJudged.size >= UNJUDGED_LABELS_MAX && !this.#notJudged.has(keyOf(charge.label));
    const label = isFull ? OTHER_LABELS : charge.label;
    const known = this.#notJudged.get(keyOf(label));
    if (!known) {
      const { accountId, tokenClass, quantity, billedPico } = charge;
      const line = { accountId, label, tokenClass, reason, firstDay: day, lastDay: day, days: 1 };
      this.#notJudged.set(keyOf(label), { ...line, quantity, billedPico });
      return;
    }
    if (known.lastDay !== day) known.days += 1;
    known.lastDay = day;
    known.billedPico += charge.billedPico;
    known.quantity =
      known.quantity === null || charge.quantity === null ? null : known.quantity + charge.quantity;
  }

  /** Keeps the largest ended lines, at most twice the limit, and the sums of the others. */
  #close(line: AuditLine): void {
    this.#closed.push(line);
    if (this.#closed.length <= 2 * this.#linesMax) return;
    this.#closed.sort(byAmount);
    for (const small of this.#closed.splice(this.#linesMax)) omit(this.#omitted, small);
  }
}

function omit(omitted: AuditResult['omitted'], line: AuditLine): void {
  omitted.lines += 1;
  omitted.billedPico += line.billedPico;
  omitted.agreedPico += line.agreedPico;
}

function byAmount(a: AuditLine, b: AuditLine): number {
  return (
    compare(absPico(differenceOf(b)), absPico(differenceOf(a))) ||
    compare(a.firstDay, b.firstDay) ||
    byPlace(a, b)
  );
}

/** By account and label; classes in the order of bills. */
function byPlace(a: SortedPlace, b: SortedPlace): number {
  return (
    compare(a.accountId, b.accountId) ||
    compare(a.label, b.label) ||
    BILLED_CLASSES.indexOf(a.tokenClass) - BILLED_CLASSES.indexOf(b.tokenClass) ||
    compare(kindOf(a), kindOf(b))
  );
}

type SortedPlace = Pick<AuditPlace, 'accountId' | 'label' | 'tokenClass'> & Partial<AuditPlace>;

/** The ordinary service first, then its variants. */
function kindOf({ serviceTier = '', isBatch, longContext, region }: SortedPlace): string {
  const tier = serviceTier === 'standard' ? '' : serviceTier;
  return [tier, isBatch ? 'batch' : '', longContext ? 'long' : '', region ?? ''].join('\n');
}

/** The subject of an audit line: one model and class, further divided by the circumstances that the bill separates. */
export interface AuditPlace {
  accountId: string;
  label: string;
  tokenClass: BilledClass;
  serviceTier: string;
  isBatch: boolean | null;
  longContext: boolean | null;
  region: string | null;
}

/** Charges of one place over several days, with their right amounts. */
export interface AuditLine extends AuditPlace {
  firstDay: string;
  lastDay: string;
  /** Number of days with such a charge. */
  days: number;
  quantity: bigint;
  billedPico: Pico;
  agreedPico: Pico;
  /** null: the list is not sure of a rate. */
  listPico: Pico | null;
  /** The line's quantity is a mixture, e.g. of batch and standard, so its rates are averages. */
  isMixture: boolean;
  /** Known mistakes that explain exactly this amount on every day of the line. */
  looksLike: readonly RateHint[];
  /** The source of the agreed rate, the agreement of the price sources, and whether one contradicts. */
  priceSource: string;
  agreement: string;
  disputed: boolean;
}

/** A charge with a known agreed amount. */
export type JudgedCharge = DayCharge & { agreedPico: Pico };

/** A line that the next day may extend. */
export interface OpenLine {
  line: AuditLine;
  agreedRate: Pico | null;
  listRate: Pico | null;
  /**
   * The range of ratios billed ÷ agreed that every day of the line allows within its rounding, scaled by
   * RATIO_SCALE.
   */
  leastRatio: bigint;
  mostRatio: bigint;
}

const RATIO_SCALE = 10n ** 12n;
/** Ratios that differ by less than one part in this many are equal, since providers round rates. */
const SAME_RATIO_PARTS = 10_000n;

export function differenceOf(line: Pick<AuditLine, 'billedPico' | 'agreedPico'>): Pico {
  return line.billedPico - line.agreedPico;
}

/** A key that is unique for each place. */
export function placeKey(place: AuditPlace): string {
  const { accountId, label, tokenClass, serviceTier, isBatch, longContext, region } = place;
  return [accountId, label, tokenClass, serviceTier, isBatch, longContext, region].join('\n');
}

export function lineOf(day: string, charge: JudgedCharge): AuditLine {
  const { accountId, label, tokenClass, serviceTier, isBatch, longContext, region } = charge;
  const { billedPico, agreedPico, listPico, looksLike, priceSource, agreement, disputed } = charge;
  return {
    ...{ accountId, label, tokenClass, serviceTier, isBatch, longContext, region },
    ...{ firstDay: day, lastDay: day, days: 1, quantity: charge.quantity ?? 0n },
    ...{ billedPico, agreedPico, listPico, isMixture: charge.agreedRate === null },
    ...{ looksLike, priceSource, agreement, disputed },
  };
}

/** Adds a day's charge of the same place to a line. */
export function extendLine(line: AuditLine, day: string, charge: JudgedCharge): void {
  if (line.lastDay !== day) line.days += 1;
  line.lastDay = day;
  line.quantity += charge.quantity ?? 0n;
  line.billedPico += charge.billedPico;
  line.agreedPico += charge.agreedPico;
  line.listPico = line.listPico === null || charge.listPico === null ? null : line.listPico + charge.listPico;
  line.isMixture ||= charge.agreedRate === null;
  line.priceSource = charge.priceSource;
  line.agreement = charge.agreement;
  line.disputed ||= charge.disputed;
}

export function openLine(day: string, charge: JudgedCharge): OpenLine {
  const { agreedRate, listRate } = charge;
  const { least, most } = ratiosOf(charge);
  return { line: lineOf(day, charge), agreedRate, listRate, leastRatio: least, mostRatio: most };
}

/**
 * Adds a charge to an open line of the same error: same rates, and the same ratio or known mistake. Otherwise
 * returns false.
 */
export function continueLine(open: OpenLine, day: string, charge: JudgedCharge): boolean {
  if (open.agreedRate !== charge.agreedRate || open.listRate !== charge.listRate) return false;
  const { least, most } = ratiosOf(charge);
  const hints = open.line.looksLike.filter((hint) => charge.looksLike.includes(hint));
  const slack = open.mostRatio / SAME_RATIO_PARTS;
  const isSameRatio = least <= open.mostRatio + slack && most >= open.leastRatio - slack;
  if (!isSameRatio && hints.length === 0) return false;
  if (isSameRatio) {
    if (least > open.leastRatio && least <= open.mostRatio) open.leastRatio = least;
    if (most < open.mostRatio && most >= open.leastRatio) open.mostRatio = most;
  } else {
    open.leastRatio = least;
    open.mostRatio = most;
  }
  extendLine(open.line, day, charge);
  open.line.looksLike = hints;
  return true;
}

function ratiosOf(charge: JudgedCharge): { least: bigint; most: bigint } {
  const { billedPico, agreedPico, roundingPico } = charge;
  const divisor = agreedPico > 0n ? agreedPico : 1n;
  return {
    least: ((billedPico - roundingPico) * RATIO_SCALE) / divisor,
    most: ((billedPico + roundingPico) * RATIO_SCALE) / divisor + 1n,
  };
}

/** Dollars per million tokens of a whole line; null: it has no quantity. */
export function perMtok(amountPico: Pico | null, quantity: bigint): Pico | null {
  return amountPico === null || quantity <= 0n ? null : billedRate(amountPico, quantity);
}
