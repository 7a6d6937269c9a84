/** Mistakes of the quantity: the billed usage differs from the actual one. */

import type { Charge } from '../../bills/ledger.js';
import {
  INPUT,
  listRates,
  OUTPUT,
  periodAt,
  READ,
  scaled,
  WRITE_1H,
  WRITE_5M,
} from '../../bills/rateBook.js';
import { dayOf } from '../../support/days.js';
import { askedOf, type Booking } from '../booking.js';
import type { Series } from '../series.js';
import { changed, type Kind } from './mistake.js';

const withTokens = (charge: Charge, tokenClass: number, count: number): Charge => ({
  ...charge,
  tokens: charge.tokens.map((one, at) => (at === tokenClass ? count : one)),
});

const sumOf = (charge: Charge, classes: readonly number[]): number =>
  classes.reduce((sum, at) => sum + (charge.tokens[at] as number), 0);

export const doubleMetered: Kind = (series) =>
  series.habits.promptMix[READ] === 0
    ? undefined
    : {
        form: 'cached_tokens_in_input_too',
        cause: 'cached_tokens_double_metered',
        nature: 'quantity',
        bill: (_call, right) =>
          changed(right, (charge) =>
            withTokens(charge, INPUT, sumOf(charge, [INPUT, READ, WRITE_5M, WRITE_1H])),
          ),
      };

export const failedBilled: Kind = (series) =>
  series.habits.failedShare < 0.01
    ? undefined
    : {
        form: 'failed_attempts_billed',
        cause: 'failed_request_billed',
        nature: 'quantity',
        needsAnswers: true,
        bill: (call, right, _seconds, charge) =>
          call.status === 'error' ? { cost: [charge], usage: [charge] } : right,
      };

const cancelledReason =
  'the client does not count what came after it went away, so the same documents fit with its own under-count';

export const cancelledOverbilled: Kind = (series) =>
  series.habits.cancelledShare < 0.01
    ? undefined
    : {
        form: 'cancelled_streams_billed_whole',
        cause: 'cancelled_stream_overbilled',
        nature: 'nothing',
        reason: cancelledReason,
        bill: (call, right) =>
          call.status === 'cancelled'
            ? changed(right, (charge) => withTokens(charge, OUTPUT, call.wholeOutput))
            : right,
      };

const DAYS_TWICE = 5;

/** Whether double rates for all lines of a series equal the rates of a more expensive tier. */
export function hasDoubleTier({ book, habits }: Series): boolean {
  const period = book.periods.at(-1);
  const dear = period?.priority ?? period?.fast;
  const isOrdinaryOnly = habits.batchShare === 0 && habits.longShare === 0 && habits.priorityShare === 0;
  return isOrdinaryOnly && dear?.[INPUT] === (period?.standard[INPUT] as number) * 2;
}

export const duplicateInCosts: Kind = (series) => {
  const isPlain = series.provider !== 'openai' && series.provider !== 'anthropic';
  const isAmbiguous = hasDoubleTier(series) && series.provider === 'anthropic';
  return {
    form: 'days_twice_in_costs',
    cause: 'duplicate_charge',
    nature: isAmbiguous || isPlain ? 'nothing' : 'rate',
    reason: isPlain
      ? 'a file has no second count of the same usage'
      : 'twice the amount for the quantities of the usage report is also the price of the fast mode',
    isUniform: true,
    hasTwin: true,
    needsSecondCount: hasDoubleTier(series),
    isWholeDays: true,
    daysHigh: DAYS_TWICE,
    bill: (_call, right) => ({ cost: [...right.cost, ...right.cost], usage: right.usage }),
  };
};

export const duplicateInBoth: Kind = () => ({
  form: 'days_twice_in_costs_and_usage',
  cause: 'duplicate_charge',
  nature: 'nothing',
  reason: 'twice in the usage report too, it is what as much usage that nobody told of would be',
  isUniform: true,
  isWholeDays: true,
  daysHigh: DAYS_TWICE,
  bill: (_call, right) => ({
    cost: [...right.cost, ...right.cost],
    usage: [...right.usage, ...right.usage],
  }),
});

const recounted =
  (form: string, low: number, high: number): Kind =>
  (series, { random }) => {
    const tokenClass = random.pick([
      INPUT,
      OUTPUT,
      ...(series.habits.promptMix[READ] === 0 ? [] : [READ]),
    ] as number[]);
    const factor = random.between(low, high);
    return {
      form,
      cause: 'token_count_inflation',
      nature: 'quantity',
      needsQuantity: true,
      bill: (_call, right) =>
        changed(right, (charge) =>
          withTokens(charge, tokenClass, Math.round((charge.tokens[tokenClass] as number) * factor)),
        ),
    };
  };

export const inflated = recounted('one_class_counted_too_high', 1.05, 1.3);
export const deflated = recounted('one_class_counted_too_low', 0.7, 0.95);

/** Bills usage of one model as another model of the same account. */
const misattributed =
  (isDearer: boolean): Kind =>
  (series, { neighbours, random }) => {
    const price = (one: Series) => one.book.periods.at(-1)?.standard[INPUT] as number;
    const partners = neighbours.filter((other) =>
      isDearer ? price(other) >= price(series) * 1.5 : price(other) * 1.5 <= price(series),
    );
    if (partners.length === 0) return undefined;
    const partner = random.pick(partners);
    return {
      form: isDearer ? 'billed_as_a_dearer_model' : 'billed_as_a_cheaper_model',
      cause: 'model_misattribution',
      nature: 'label',
      needsAnswers: true,
      partner,
      bill: (call, right, seconds) => asModel(right, partner, call, seconds),
    };
  };

function asModel(
  right: Booking,
  partner: Series,
  call: Parameters<typeof askedOf>[0],
  seconds: number,
): Booking {
  try {
    const period = periodAt(partner.book, dayOf(seconds));
    const rates = scaled(listRates(partner.book, period, askedOf(call)), partner.contractPerMille);
    const hasMeters = call.tokens.every((count, at) => count === 0 || rates[at] !== 0n);
    if (!hasMeters) return right;
    return changed(right, (charge) => ({ ...charge, model: partner.book.billed, rates }));
  } catch {
    // The other model lacks an option that the call requested.
    return right;
  }
}

export const asDearerModel = misattributed(true);
export const asCheaperModel = misattributed(false);

/** Usage of a key after its revocation: the company has no such calls, and the provider should have refused them. */
export const revokedKey: Kind = (series, { random }) => {
  const key = { ...random.pick(series.keys), keyId: `${random.pick(series.keys).keyId}Rv` };
  series.keys.push(key);
  const { isUntold } = series.circumstances;
  series.circumstances.isUntold = (call) => call.key === key || isUntold(call);
  return {
    form: 'revoked_key_used',
    cause: 'unauthorized_key_usage',
    nature: 'key',
    revokedKeyId: key.keyId,
    bill: (call, right, _seconds, charge) =>
      call.key === key && call.status !== 'error' ? { cost: [charge], usage: [charge] } : right,
  };
};
