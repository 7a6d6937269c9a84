/**
 * That our price is the one that is wrong: what price sources agree on can still be old, or not be what was agreed. An end
 * of a wrong rate speaks against it, since our price was right then; without one nothing in the bill tells the two apart.
 */
import type { RunHistory } from './history.js';
import type { JudgedDay, RunOfDays } from './runs.js';
import type { State } from './states.js';

/** The provider's mistake against our own price: between the odds that MEDIUM asks for and those that HIGH does. */
const UNDECIDED = 6;

/** Rates that no line of the model's own price list gives for these calls: a price list may have them as well. */
const ANY_PRICE = /^(input_share|uplift|discount_twice|amounts_|rates_of:)/;

/**
 * At most these odds has a run of wrong rates to be the provider's mistake and not our price's; null where the history
 * leaves no such doubt, or a contract gives the price.
 */
export function oddsAgainstOurPrice(run: RunOfDays, history: RunHistory): number | null {
  if (!isAboutRates(run.state) || run.days.every(({ judged }) => isByContract(judged))) return null;
  if (history.isWhole) return UNDECIDED;
  const hasBothEnds = history.rightBefore && history.rightAfter;
  return ANY_PRICE.test(run.state.variant) && !hasBothEnds ? UNDECIDED : null;
}

/** A discount on top of an entered contract's: the bill's where it comes and goes, else terms that nobody entered. */
const isMoreDiscount = ({ kind, variant }: State): boolean =>
  kind === 'contract_rate_not_applied' && variant === 'discount_twice';

const isTerms = ({ kind }: State): boolean => kind === 'contract_terms';

/**
 * A rate that was never otherwise is ours to read first where a price list may have it as well, where no other line of the
 * model shows that our prices are right, and wherever the bill has amounts alone, which do not even tell calls from prices:
 * the provider's mistake is not considered. Nor is a discount taken off twice that has no right day before it and after it;
 * and where it has both, terms are not.
 */
export function isRuledOutByHistory(
  state: State,
  run: RunOfDays,
  history: RunHistory,
  hasContract: boolean,
): boolean {
  const comesAndGoes = history.rightBefore && history.rightAfter;
  if (isMoreDiscount(state)) return !comesAndGoes;
  if (isTerms(state)) return hasContract && comesAndGoes;
  if (!history.isWhole || !isAboutRates(state)) return false;
  const isAnyPrice = ANY_PRICE.test(state.variant) || history.isNeverRight;
  return run.days.every(
    ({ judged }) => (isAnyPrice || judged.work.reading.depth !== 'quantities') && !isByContract(judged),
  );
}

function isAboutRates({ hypothesis }: State): boolean {
  return hypothesis?.nature === 'rate' && hypothesis.blame === 'provider';
}

function isByContract({ work }: JudgedDay): boolean {
  const { day } = work.reading;
  return day.pricedAs !== null && day.agreed.provenance(day.pricedAs).agreement === 'contract';
}
