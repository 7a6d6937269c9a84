import { absPico } from '../../money.js';
import type { Hypothesis, SeriesDay, Variant } from './hypothesis.js';
import { amountAs, hasQuantities, otherCharge, rateVariant, scaled } from './predict.js';
import { touchesEdge } from './runs.js';
import { sentenceOf } from './words.js';

const WORDS = {
  list_price: 'The list price was charged instead of the contract’s.',
  discount_twice: 'The contract’s discount was taken off twice.',
  other_contract: 'The rates of the contract that held from % on were charged while another one held.',
};

/** Another price than the contract's: the list's, or that of a contract of other days. */
export const contractRate: Hypothesis = {
  kind: 'contract_rate_not_applied',
  nature: 'rate',
  blame: 'provider',
  needs: ['quantity', 'contract'],
  variants: (day) =>
    day.pricedAs !== null && isUnderContract(day, day.pricedAs)
      ? [
          ...otherCharge(day, 'list_price', { rates: day.list }),
          // With amounts alone less than agreed in all classes may as well be terms, or events that count too much.
          ...(hasQuantities(day) ? discountTwice(day) : []),
          ...otherContracts(day, day.pricedAs),
        ]
      : [],
  // A discount that is larger from the first day on, or to the last, is one that was agreed and not entered.
  fits: (run, context, variant) => variant !== 'discount_twice' || !touchesEdge(run, context),
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => [
    'Send the clause of the contract that names the rates, and the first day on which they hold.',
  ],
};

function isUnderContract(day: SeriesDay, model: string): boolean {
  const found = day.agreed.periodsOf(model);
  return found?.periods[found.now]?.contractId != null;
}

function discountTwice(day: SeriesDay): Variant[] {
  const agreedTwice = (meter: SeriesDay['meters'][number], quantity: bigint) => {
    const list = amountAs(day, meter, quantity, { rates: day.list });
    const agreed = amountAs(day, meter, quantity);
    return list === null || agreed === null || list === 0n ? null : scaled(agreed, agreed, list);
  };
  const isTouched = (meter: SeriesDay['meters'][number]) => {
    const probe = 10n ** 24n;
    const list = amountAs(day, meter, probe, { rates: day.list });
    const agreed = amountAs(day, meter, probe);
    return list !== null && agreed !== null && absPico(list - agreed) > 0n;
  };
  return day.meters.some(isTouched) ? [rateVariant(day, 'discount_twice', agreedTwice, isTouched)] : [];
}

/** Periods of other contracts; what the same contract makes of another list price is a matter of dates. */
function otherContracts(day: SeriesDay, model: string): Variant[] {
  const found = day.agreed.periodsOf(model);
  if (!found) return [];
  const now = found.periods[found.now];
  return found.periods
    .filter((period) => period.contractId !== null && period.contractId !== now?.contractId)
    .flatMap((period) =>
      otherCharge(day, `other_contract:${period.fromDay ?? 'the beginning'}`, { rates: period.rates }),
    );
}
