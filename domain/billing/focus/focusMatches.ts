import { absPico, type Pico } from '../../money.js';
import type { ClassLine } from '../../reconciliation/matching/cells.js';
import { apportion } from '../../reconciliation/matching/charge.js';
import type { BilledClass } from '../billedRow.js';
import type { ComparedDay, FocusCharge, FocusMatch } from './focusCharge.js';

/** Observed use of a model's day that no row of the bill charges. */
export interface UnbilledUse {
  day: ComparedDay;
  line: Pick<ClassLine, 'tokenClass' | 'observedQuantity'>;
  observedPico: Pico;
}

/**
 * The computed cost of each model's day, divided among the charges that it was compared with: by class as the observed
 * calls cost, inside a class as the rows were billed. What no row is charged for is named beside. Everything sums to the
 * days' computed cost exactly.
 */
export function matchCharges(
  charges: readonly FocusCharge[],
  dayOf: (charge: FocusCharge) => ComparedDay | undefined,
  days: readonly ComparedDay[],
): { matches: Map<FocusCharge, FocusMatch>; unbilled: UnbilledUse[] } {
  const members = new Map<ComparedDay, FocusCharge[]>(days.map((day) => [day, []]));
  const matches = new Map<FocusCharge, FocusMatch>();
  for (const charge of charges) {
    const day = dayOf(charge);
    if (day) members.get(day)?.push(charge);
    else matches.set(charge, NOT_COMPARED);
  }
  const unbilled: UnbilledUse[] = [];
  for (const [day, own] of members) unbilled.push(...divide(day, own, matches));
  return { matches, unbilled };
}

const NOT_COMPARED: FocusMatch = {
  status: 'not_compared',
  reason: null,
  grade: null,
  provisional: null,
  observedPico: null,
  gapPico: null,
  finding: null,
  disputeId: null,
};

function divide(
  day: ComparedDay,
  charges: readonly FocusCharge[],
  matches: Map<FocusCharge, FocusMatch>,
): UnbilledUse[] {
  const classes = [
    ...new Set<BilledClass>([
      ...day.lines.map((line) => line.tokenClass),
      ...charges.map((charge) => charge.tokenClass),
    ]),
  ];
  if (classes.length === 0) classes.push('other');
  const lineOf = (tokenClass: BilledClass) => day.lines.find((line) => line.tokenClass === tokenClass);
  const weights = classes.map((name) => lineOf(name)?.expectedOfObservedPico ?? 0n);
  // Where no rate is known the quantities alone say how the cost is made up.
  const byQuantity = classes.map((name) => lineOf(name)?.observedQuantity ?? 0n);
  const isPriced = weights.some((weight) => weight > 0n);
  const shares = apportion(day.ourCostPico, (isPriced ? weights : byQuantity).map(absPico));
  const unbilled: UnbilledUse[] = [];
  classes.forEach((tokenClass, at) => {
    const share = shares[at] ?? 0n;
    const own = charges.filter((charge) => charge.tokenClass === tokenClass);
    const observedQuantity = lineOf(tokenClass)?.observedQuantity ?? 0n;
    if (own.length === 0) {
      if (share !== 0n || observedQuantity !== 0n)
        unbilled.push({ day, line: { tokenClass, observedQuantity }, observedPico: share });
      return;
    }
    const parts = apportion(
      share,
      own.map((charge) => absPico(charge.amountPico ?? charge.originalAmount)),
    );
    own.forEach((charge, index) => {
      matches.set(charge, matchOf(day, charge, parts[index] ?? 0n));
    });
  });
  return unbilled;
}

function matchOf(day: ComparedDay, charge: FocusCharge, observedPico: Pico): FocusMatch {
  return {
    status: day.matchStatus,
    reason: day.reason,
    grade: day.grade,
    provisional: day.provisional,
    observedPico,
    gapPico: charge.amountPico === null ? null : charge.amountPico - observedPico,
    finding: day.finding,
    disputeId: day.disputeId,
  };
}
