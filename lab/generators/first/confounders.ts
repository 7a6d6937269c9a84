/** Benign circumstances of a series that make a right bill look wrong. */
import { DAY_SECONDS, dayOf, HOUR_SECONDS } from '../support/days.js';
import type { Random } from '../support/random.js';
import type { ToldCall } from '../world.js';
import { lotOf, type Window } from './booking.js';
import { keyName, projectName, type Series } from './series.js';

export interface Confounder {
  form: string;
  cause: string;
  /** First and below last affected day, inclusive. */
  firstDay: number;
  lastDay: number;
  note: string;
}

/** The registry that records unregistered keys. */
export interface Registry {
  unregistered: Set<string>;
}

type Confound = (
  series: Series,
  window: Window,
  random: Random,
  registry: Registry,
) => Confounder | undefined;

const whole = (window: Window) => ({ firstDay: window.firstDay, lastDay: window.lastDay });

function someDays(window: Window, random: Random, low: number, high: number) {
  const length = random.whole(low, high);
  const firstDay = random.whole(
    window.firstDay + 2,
    Math.max(window.firstDay + 2, window.provisionalFrom - length - 2),
  );
  return { firstDay, lastDay: firstDay + length - 1 };
}

const sdkOutage: Confound = (series, window, random) => {
  const days = someDays(window, random, 1, 6);
  const start = days.firstDay * DAY_SECONDS + random.whole(0, 20) * HOUR_SECONDS;
  const end =
    start +
    (random.chance(0.5)
      ? random.whole(3, 12) * HOUR_SECONDS
      : (days.lastDay - days.firstDay + 1) * DAY_SECONDS);
  series.circumstances.isUntold = (call) => call.endSeconds >= start && call.endSeconds < end;
  return {
    form: 'sdk_outage',
    cause: 'unobserved_usage',
    firstDay: dayOf(start),
    lastDay: dayOf(end - 1),
    note: 'the wrapper was away',
  };
};

const constantLoss: Confound = (series, window, random) => {
  series.circumstances.coverage = random.between(0.5, 0.93);
  return {
    form: 'constant_loss',
    cause: 'unobserved_usage',
    ...whole(window),
    note: 'a part of the calls has no wrapper',
  };
};

const hiddenContract: Confound = (series, window, random) => {
  series.circumstances.hiddenPerMille = random.pick([800, 850, 880, 900, 925, 950]);
  return {
    form: 'contract_not_entered',
    cause: 'contract_terms',
    ...whole(window),
    note: 'an agreed discount that was not entered',
  };
};

const lateData: Confound = (series, window, random) => {
  const days = someDays(window, random, 2, 6);
  const [late, by] = [random.between(0.2, 0.6), random.whole(1, 2)];
  series.circumstances.delaySeconds = (call) => {
    const day = dayOf(call.endSeconds);
    return day >= days.firstDay && day <= days.lastDay && lotOf(call, 3) < late ? by * DAY_SECONDS : 0;
  };
  return {
    form: 'booked_days_late',
    cause: 'late_usage_adjustment',
    firstDay: days.firstDay,
    lastDay: days.lastDay + by,
    note: 'a part of the usage was booked one or two days late',
  };
};

const inclusive = (call: ToldCall): number =>
  call.input + call.cacheRead + call.cacheWrite5m + call.cacheWrite1h;

/** A client that cannot report cached tokens separately. */
export const withoutCache = (call: ToldCall): ToldCall => ({
  ...call,
  input: inclusive(call),
  cacheRead: 0,
  cacheWrite5m: 0,
  cacheWrite1h: 0,
  lacksCache: true,
});

const metering =
  (form: string, note: string, told: (call: ToldCall) => ToldCall): Confound =>
  (series, window) => {
    series.circumstances.told = told;
    series.circumstances.lacksCache = told === withoutCache;
    return { form, cause: 'client_metering_error', ...whole(window), note };
  };

const lacksCache = metering(
  'client_lacks_cache_tokens',
  'cached tokens are told as plain input',
  withoutCache,
);
const inclusiveInput = metering(
  'client_input_includes_cached',
  'cached tokens are told twice by the client',
  (call) => ({
    ...call,
    input: inclusive(call),
  }),
);
const batchUnflagged: Confound = (series, window, random, registry) =>
  series.habits.batchShare === 0
    ? undefined
    : metering('client_does_not_flag_batch', 'batch calls are told as ordinary ones', (call) => ({
        ...call,
        isBatch: false,
      }))(series, window, random, registry);

const anotherKey =
  (isRegistered: boolean): Confound =>
  (series, window, random, registry) => {
    const keyId = keyName(series.provider, random);
    const project = isRegistered ? projectName(series.provider, random) : (series.keys[0]?.project ?? null);
    const key = { keyId, project, serviceName: 'unknown' };
    series.keys.push(key);
    if (!isRegistered) registry.unregistered.add(keyId);
    const from = someDays(window, random, 5, 30);
    series.circumstances.isUntold = (call) => call.key === key;
    return {
      form: isRegistered ? 'second_project' : 'key_nobody_entered',
      cause: 'unobserved_usage',
      ...whole(window),
      note: `usage of the company by a ${isRegistered ? 'project' : 'key'} without a wrapper (from ${from.firstDay})`,
    };
  };

const freeAllowance: Confound = (series, window, random) => {
  const days = someDays(window, random, 2, 12);
  series.circumstances.isFree = (call) => {
    const day = dayOf(call.endSeconds);
    return day >= days.firstDay && day <= days.lastDay && !call.isBatch;
  };
  return { form: 'free_allowance', cause: 'other', ...days, note: 'usage at amount zero' };
};

export const CONFOUNDERS: readonly Confound[] = [
  sdkOutage,
  sdkOutage,
  constantLoss,
  hiddenContract,
  hiddenContract,
  lateData,
  lacksCache,
  inclusiveInput,
  batchUnflagged,
  anotherKey(true),
  anotherKey(false),
  freeAllowance,
];
