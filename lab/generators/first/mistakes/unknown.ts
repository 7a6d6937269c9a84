/** Mistakes outside the library, which must remain unexplained. */
import { OUTPUT, READ, scaled } from '../../bills/rateBook.js';
import { dayOf } from '../../support/days.js';
import { atRates, type Kind, withRate } from './mistake.js';

const FACTORS_OVER = [1_137, 1_370, 1_710, 2_230];
const FACTORS_UNDER = [630, 770, 910];
const REASON = 'no mistake of the library is of this form; that the rate is wrong can be seen';

const oddRate =
  (factors: readonly number[]): Kind =>
  (_series, { random }) => {
    const perMille = random.pick(factors);
    const onlyOutput = random.chance(0.4);
    return {
      form: `${onlyOutput ? 'output_' : ''}rate_times_${perMille}`,
      cause: 'not_in_library',
      otherNames: ['list_rate_mismatch'],
      nature: 'nothing',
      reason: REASON,
      isUniform: !onlyOutput,
      bill: (_call, right) =>
        atRates(right, ({ rates }) => {
          const odd = scaled(rates, perMille);
          return onlyOutput ? withRate(rates, OUTPUT, odd[OUTPUT] as bigint) : odd;
        }),
    };
  };

export const oddRateOver = oddRate(FACTORS_OVER);
export const oddRateUnder = oddRate(FACTORS_UNDER);

/** One class at another rate every day. */
export const noisyClass: Kind = (series, { random }) => {
  const salt = random.whole(1, 1_000);
  if (series.habits.promptMix[READ] === 0) return undefined;
  return {
    form: 'cache_read_at_changing_rates',
    cause: 'not_in_library',
    otherNames: ['list_rate_mismatch'],
    nature: 'nothing',
    reason: REASON,
    bill: (_call, right, seconds) =>
      atRates(right, ({ rates }) => {
        const perMille = 1_300 + ((dayOf(seconds) * 7_919 + salt * 104_729) % 2_400);
        return withRate(rates, READ, ((rates[READ] as bigint) * BigInt(perMille)) / 1_000n);
      }),
  };
};

const LABELS = ['Regional processing surcharge', 'Platform adjustment fee', 'Capacity fee'];
const PICO_PER_CENT = 10_000_000_000n;

/** Lines without an explanation. */
export const surcharge: Kind = (series, { random }) => {
  const label = random.pick(LABELS);
  const cents = random.whole(60, 900);
  return {
    form: 'surcharge_lines',
    cause: 'not_in_library',
    nature: 'nothing',
    reason: 'a label that nobody knows',
    isWholeDays: true,
    bill: (_call, right) => right,
    extras: (firstDay, lastDay) => {
      const lines = [];
      for (let day = firstDay; day <= lastDay; day += 1)
        lines.push({
          provider: series.provider,
          accountId: series.accountId,
          day,
          label,
          kind: 'surcharge' as const,
          project: null,
          pico: BigInt(cents + ((day * 37) % 50)) * PICO_PER_CENT,
        });
      return lines;
    },
  };
};
