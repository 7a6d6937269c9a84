import { absPico } from '../../../money.js';
import {
  LESS_PERCENT,
  MORE_PERCENT,
  ODDS_MIN,
  ONE_SHARE_PERCENT,
  SAME_COUNT_PARTS,
  TIMES_PARTS,
} from '../calibration.js';
import {
  coversMost,
  type Hypothesis,
  having,
  type MeterDay,
  type SeriesDay,
  sentenceOf,
  servicesOf,
  textOf,
  touchesEdge,
  type Variant,
} from './cause.js';
import { dearerByHour, hoursOfClass, natsOfHours } from './hours.js';
import { chargedMeters, partnerOfClass, sharedRatio } from './places.js';
import { countsByClass, isOneRatioOf, multipleOf, quantityVariant, reportedOf, sumOf } from './predict.js';

const WORDS = {
  partly_beyond_usage_report:
    'The charge counts more than the provider’s own usage report does, and no whole number of times as much.',
  beyond_usage_report: 'The charge counts more than the provider’s own usage report does.',
  again_beyond_usage_report:
    'Cached tokens were charged a second time as fresh input, which the provider’s own usage report does not count.',
  below_usage_report: 'The charge counts less than the provider’s own usage report does.',
  hours_twice:
    'Some hours of the day were charged twice: of every class the charge counts what these hours had more than the provider’s own usage report.',
  amounts_twice: 'What the provider’s own usage report counts once was charged twice.',
  amounts_of_half: 'Only half of what the provider’s own usage report counts was charged.',
};

const ASK = [
  'Put the charge beside the provider’s own usage report for the same days: the two must count the same.',
];

/**
 * The same use billed more than once. Sums over a day cannot show it: twice the tokens are as well twice the use. Only
 * where the provider's own usage report, or its count of requests, counts once what is charged twice, is it visible.
 */
export const duplicateQuantity: Hypothesis = {
  kind: 'duplicate_charge',
  nature: 'quantity',
  blame: 'provider',
  needs: ['quantity', 'usage_report'],
  variants: (day) => {
    const against = countedOtherwise(day);
    if (!against) return [];
    if (!against.isMore) return [quantityVariant(day, 'below_usage_report', against.quantities)];
    if (against.isWhole) return [beyondReport(day, 'beyond_usage_report', against)];
    return areHoursTwice(day) ? [beyondReport(day, 'hours_twice', against)] : [];
  },
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => ASK,
};

/**
 * Whether some hours of the day had just what the charge counts more than the usage report, in every class: another project's
 * use has no such mixture. Where they go on over midnight, both days show it together.
 */
function areHoursTwice(day: SeriesDay): boolean {
  const beside = [day.before, day.after].map((one) =>
    one && countedOtherwise(one)?.isMore ? Math.max(0, natsOfTwice(one)) : 0,
  );
  return natsOfTwice(day) + Math.max(...beside) >= Math.log(ODDS_MIN);
}

/** The hours are those of the report, or of calls that are what it counts. */
function natsOfTwice(day: SeriesDay): number {
  const classes = countsByClass(day).filter(({ reported }) => reported > 0n);
  const lines = classes.flatMap(({ tokenClass, billed, reported }) => {
    const byHour = hoursOfClass(day, tokenClass, Number(reported));
    const slack = Number(reported) / Number(SAME_COUNT_PARTS);
    return byHour ? [{ wrong: Number(billed - reported), slack, byHour }] : [];
  });
  return lines.length === classes.length ? natsOfHours(lines) : Number.NEGATIVE_INFINITY;
}

/**
 * A part charged twice. The bill may as well hold a project that the report leaves out, so it needs right days before and
 * after, and stays to be looked at; where it lasts, it is the report's scope (unobserved.ts).
 */
export const duplicatePart: Hypothesis = {
  kind: 'duplicate_charge',
  nature: 'quantity',
  blame: 'provider',
  needs: ['quantity', 'usage_report'],
  highest: 'MEDIUM',
  variants: (day) => {
    const against = countedOtherwise(day);
    return against?.isMore && !against.isWhole && !areHoursTwice(day)
      ? [quantityVariant(day, 'partly_beyond_usage_report', against.quantities)]
      : [];
  },
  fits: (run, context) => !touchesEdge(run, context) && !coversMost(run, context),
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => [
    'Look whether the usage report covers all projects and workspaces that the bill does; if so, the two must count the same.',
  ],
};

/** Bills without quantities: the usage report counts, and the amounts are exactly twice its charge in every class. */
export const duplicateAmounts: Hypothesis = {
  kind: 'duplicate_charge',
  nature: 'rate',
  blame: 'provider',
  needs: ['usage_report'],
  variants: (day) => {
    const charged = chargedMeters(day.meters);
    const isCounted = charged.length > 0 && charged.every(({ meter }) => meter.quantitySource === 'usage');
    if (!isCounted) return [];
    const ratio = sharedRatio(charged);
    if (!ratio) return ofSomeHours(day, charged);
    const isMeant = (meter: MeterDay) => charged.some((one) => one.index === meter.index);
    return having(
      { isAnyPrice: true },
      ratio.billedPico > ratio.expectedPico
        ? multipleOf(day, 'amounts_twice', 2n, 1n, isMeant)
        : multipleOf(day, 'amounts_of_half', 1n, 2n, isMeant),
    );
  },
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => ASK,
};

/** Some hours of a day charged twice: of the lines of each place that are dearer, each by what these hours had. */
function ofSomeHours(day: SeriesDay, charged: readonly MeterDay[]): Variant[] {
  const tooMuch = ({ meter, expectedPico }: MeterDay) => meter.amountPico - (expectedPico ?? 0n);
  const isMeant = ({ meter }: MeterDay) =>
    charged.some((one) => one.meter.region === meter.region && tooMuch(one) > one.meter.roundingPico + 1n);
  const meant = charged.filter(isMeant);
  const twice = multipleOf(day, 'amounts_twice', 2n, 1n, isMeant);
  const [variant] = twice;
  const expected = (one: MeterDay) => one.expectedPico ?? 0n;
  // A whole day charged twice has exactly twice on all lines; a part of it has less on some, and more than twice on none.
  const isPart =
    meant.some((one) => tooMuch(one) * TIMES_PARTS < expected(one) * (TIMES_PARTS - 1n)) &&
    meant.every((one) => tooMuch(one) <= expected(one) + one.meter.roundingPico + 1n);
  if (!variant || !isPart) return [];
  const lines = meant.flatMap((one) => {
    const byHour = dearerByHour(day, one, variant, Number(one.expectedPico));
    const slack = Number(one.meter.roundingPico + 1n);
    return byHour ? [{ byHour, wrong: Number(tooMuch(one)), slack }] : [];
  });
  const isKnown = lines.length === meant.length && natsOfHours(lines) >= Math.log(ODDS_MIN);
  return isKnown ? having({ isAnyPrice: true }, twice) : [];
}

/**
 * Cached tokens on the input's lines once more, which the usage report has not: the provider's two reports contradict each
 * other by exactly these tokens, whatever calls were seen. Of one key, or from some hour on, they are some of the day's.
 */
export const doubleMeteredOnBill: Hypothesis = {
  kind: 'cached_tokens_double_metered',
  nature: 'quantity',
  blame: 'provider',
  needs: ['quantity', 'usage_report'],
  variants: (day) => {
    const against = againOf(day);
    const isMeant = against?.again === 'all' || (against?.again === 'some' && goesOn(day, against));
    if (!against || !isMeant) return [];
    const right = cachedBesides(day, against);
    const quantities = new Map(
      [...right].map(([index, own]) => {
        const { observed, meter } = day.meters[index] as MeterDay;
        return [index, own > 0n ? (observed * (meter.quantity ?? 0n)) / own : observed];
      }),
    );
    return [beyondReport(day, 'again_beyond_usage_report', { ...against, quantities, right })];
  },
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => ASK,
};

/** The day's input beyond the report, where that is all or some of the cached tokens and nothing is booked late. */
function againOf(day: SeriesDay) {
  const against = day.meters.some((meter) => meter.booked) ? undefined : againstReport(day);
  const again = against && cachedAgain(day, against);
  return again && { ...against, again };
}

/** Whether a day beside has it too, and no factor of the input gives both: a factor has the same share on all days. */
function goesOn(day: SeriesDay, own: AgainstReport): boolean {
  return [day.before, day.after].some((one) => {
    const other = one && againOf(one);
    if (!one || !other) return false;
    const [a, b] = [inputsOf(day, own), inputsOf(one, other)];
    return (
      other.again === 'all' ||
      absPico(a.billed * b.right - b.billed * a.right) * TIMES_PARTS > a.billed * b.right
    );
  });
}

const inputsOf = ({ meters }: SeriesDay, { right }: AgainstReport) => ({
  billed: sumOf(meters.flatMap(({ index, meter }) => (right.has(index) ? [meter.quantity ?? 0n] : []))),
  right: sumOf([...right.values()]),
});

/**
 * Each line without its part of what the bill's own cached lines of the same use hold, so that all have what the report counts;
 * divided as the bill is where these hold less.
 */
function cachedBesides(day: SeriesDay, { quantities, right }: AgainstReport): Map<number, bigint> {
  const off = day.meters.filter((meter) => quantities.has(meter.index));
  const excess = sumOf(off.map(({ meter }) => meter.quantity ?? 0n)) - sumOf([...right.values()]);
  for (const classes of [['cache_read'], ['cache_read', 'cache_write_5m', 'cache_write_1h']] as const) {
    const cached = off.map((meter) =>
      sumOf(classes.map((name) => partnerOfClass(day, meter, name)?.meter.quantity ?? 0n)),
    );
    const sum = sumOf(cached);
    if (sum > 0n && (excess - sum) * SAME_COUNT_PARTS <= sum)
      return new Map(
        off.map(({ index, meter }, at) => [
          index,
          (meter.quantity ?? 0n) - (excess * (cached[at] ?? 0n)) / sum,
        ]),
      );
  }
  return right;
}

/** Whether input alone has more on the bill than in the report, and by all of the cached tokens or by some of them. */
function cachedAgain(day: SeriesDay, { isMore, quantities }: AgainstReport): 'all' | 'some' | undefined {
  const off = day.meters.filter((meter) => quantities.has(meter.index));
  if (!isMore || off.some((meter) => meter.tokenClass !== 'input')) return undefined;
  const excess = sumOf(off.map(({ meter }) => meter.quantity ?? 0n)) - reportedOf(day, 'input');
  const reads = reportedOf(day, 'cache_read');
  const cached = reads + reportedOf(day, 'cache_write_5m', 'cache_write_1h');
  const isAll = [reads, cached].some((one) => one > 0n && absPico(excess - one) * SAME_COUNT_PARTS < one);
  return isAll ? 'all' : excess < cached ? 'some' : undefined;
}

/**
 * The excess over the report holds whatever calls were seen. Where the calls are one share of the report, in every class,
 * they predict the bill; else they count otherwise than both reports do, and the bill is held against the report alone.
 */
function beyondReport(day: SeriesDay, name: string, { quantities, right }: AgainstReport): Variant {
  const isShare = isOneShare(day);
  const billedOf = (index: number) => day.meters[index]?.meter.quantity ?? 0n;
  const counted = [...quantities].map(([index, quantity]): [number, bigint] => [
    index,
    isShare ? quantity : billedOf(index),
  ]);
  return {
    ...quantityVariant(day, name, new Map(counted)),
    provenOf: ({ index }) => billedOf(index) - (right.get(index) ?? billedOf(index)),
  };
}

function isOneShare(day: SeriesDay): boolean {
  const known = countsByClass(day).filter(({ reported }) => reported > 0n);
  const shares = known.map(({ observed, reported }) => (observed * 10_000n) / reported);
  return isOneRatioOf(shares, ONE_SHARE_PERCENT);
}

/** The counts of a day's charge against the provider's own usage report. */
export interface AgainstReport {
  /** By the meters' places: what the bill would show if all calls had been seen. */
  readonly quantities: Map<number, bigint>;
  /** By the meters' places: the part of the report that is theirs, divided as the bill is. */
  readonly right: Map<number, bigint>;
  readonly isMore: boolean;
  /** Every class that is off is charged the same whole number of times. */
  readonly isWhole: boolean;
}

/** Classes whose charge counts another quantity than the usage report, and by how much; undefined where none does. */
export function againstReport(day: SeriesDay): AgainstReport | undefined {
  const quantities = new Map<number, bigint>();
  const right = new Map<number, bigint>();
  const times = new Set<bigint>();
  let isMore = false;
  for (const { meters, billed, reported } of countsByClass(day)) {
    if (meters.some(({ meter }) => meter.quantity === null || meter.quantitySource === 'usage')) continue;
    if (reported === 0n || billed === 0n) continue;
    times.add(timesOf(billed, reported));
    if (absPico(billed - reported) * SAME_COUNT_PARTS < reported) continue;
    isMore ||= billed > reported;
    // A line with the very count of its calls is right: the others have all of the difference.
    const seen = sumOf(meters.map(({ meter, observed }) => (meter.quantity === observed ? observed : 0n)));
    const known = seen < reported && seen < billed ? seen : 0n;
    for (const { index, observed, meter } of meters) {
      const isRight = known > 0n && meter.quantity === observed;
      quantities.set(index, isRight ? observed : (observed * (billed - known)) / (reported - known));
      right.set(index, isRight ? observed : ((meter.quantity ?? 0n) * (reported - known)) / (billed - known));
    }
  }
  const [only = 0n] = times;
  return quantities.size > 0
    ? { quantities, right, isMore, isWhole: times.size === 1 && only > 1n }
    : undefined;
}

/** The same, unless what differs is only booked on the day beside. */
function countedOtherwise(day: SeriesDay): AgainstReport | undefined {
  const against = againstReport(day);
  return day.meters.some((meter) => meter.booked) || (against && cachedAgain(day, against))
    ? undefined
    : against;
}

/** The whole ratio, within one part in a hundred; 0: no whole number. */
function timesOf(billed: bigint, reported: bigint): bigint {
  const times = (billed + reported / 2n) / reported;
  return absPico(billed - times * reported) * TIMES_PARTS <= reported ? times : 0n;
}

const UNOBSERVED_WORDS = {
  unseen_calls: 'The bill holds calls that no event tells of.',
  fewer_seen: 'Fewer of the calls were seen than usual, and the rest of them is on the bill.',
  report_of_a_part:
    'The bill holds calls that neither an event nor the provider’s usage report tells of: the report seems to be of a part of what is billed.',
};

const UNOBSERVED_ADVICE = {
  fewer_seen: (services: string) =>
    `Look for hours of these days in which events of ${services} were not sent: the day's unobserved_minutes tell how many.`,
  unseen_calls: (services: string) =>
    `Calls of this model come from more places than ${services}: instrument the others, or register their keys under /provider-keys.`,
};

/**
 * More of everything than was seen, in another mix: other callers of the account. A common share of every class that is
 * missing is already the coverage that every explanation is judged with.
 */
export const unobservedUsage: Hypothesis = {
  kind: 'unobserved_usage',
  nature: 'quantity',
  blame: 'none',
  needs: ['quantity'],
  variants: (day) => {
    const known = day.meters.filter(({ meter }) => meter.quantity !== null);
    const isMore = known.some(
      ({ meter, observed }) => (meter.quantity ?? 0n) * LESS_PERCENT > observed * 100n,
    );
    const isNowhereLess = known.every(
      ({ meter, observed }) => (meter.quantity ?? 0n) * MORE_PERCENT >= observed * 100n,
    );
    if (!isMore || !isNowhereLess || known.length === 0) return [];
    return [quantityVariant(day, 'unseen_calls', new Map(known.map((meter) => [meter.index, null])))];
  },
  describe: (variant) => sentenceOf(UNOBSERVED_WORDS, variant),
  advise: (variant, sources) => {
    const text = textOf(UNOBSERVED_ADVICE, variant) ?? UNOBSERVED_ADVICE.unseen_calls;
    return [text(servicesOf(sources, true))];
  },
};

/**
 * The bill counts more than the usage report, at no whole number of times, and does so for good: the report is of one
 * project, and the bill of all.
 */
export const reportOfPart: Hypothesis = {
  kind: 'unobserved_usage',
  nature: 'quantity',
  blame: 'none',
  needs: ['quantity', 'usage_report'],
  variants: (day) => {
    const against = countedOtherwise(day);
    return against?.isMore && !against.isWhole
      ? [quantityVariant(day, 'report_of_a_part', against.quantities)]
      : [];
  },
  fits: (run, context) => touchesEdge(run, context) || coversMost(run, context),
  describe: (variant) => sentenceOf(UNOBSERVED_WORDS, variant),
  advise: () => [
    'Fetch the usage report for all projects and workspaces that the bill is of, and instrument the others’ services.',
  ],
};
