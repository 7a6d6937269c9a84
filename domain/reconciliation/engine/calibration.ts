/**
 * Every number that the engine judges by, with its unit, its reason and, where there is one, its source. Weights that
 * outcomes of claims teach have a place of their own (weights/weightSet.ts).
 *
 * The numbers of engine 8.12, other than FITTED, CACHE_SHARES and NOT_ANSWERED_MAX, were made a quarter smaller and larger on
 * one world of each generator (docs/benchmarks.md, Ablation). Where a metric changed by 0.005 or more, the number states by
 * how much; the others changed none by as much.
 */
import { PICO_PER_USD } from '../../money.js';

// Calibration: from the probability of the model to the share of findings that are true

/**
 * Two numbers, fitted to the findings of all generators of the benchmark: `npm run bench:reconciliation -- --fit` writes them
 * here. `lapse`: how often a finding with all gates is wrong whatever its likelihood shows, because something happened that
 * the model does not know; a share from 0 to 1. `surer`: nats that the log-odds of an accusation which lacks a gate are above
 * those of the model, whose limits hold for the worst of them.
 */
export const FITTED = { lapse: 0, surer: 0.93 } as const;
export type Fitted = Readonly<Record<keyof typeof FITTED, number>>;

/** Rounds away what a shift and its inverse leave: limits of the model lie at limits of grades. */
export const GRADED_DECIMALS = 12;

// Likelihood of a day: natural logarithms (nats), and standard deviations of logarithms of ratios

/**
 * Nats that one meter costs at most. A named mistake has to give every amount. Measured, a quarter smaller and larger, on a
 * world of the third generator: recall at any grade +0.017 and −0.003, calibration error −0.004 and −0.016.
 */
export const SHARP_FLOORS = { rate: -25, quantity: -8 };

/**
 * The same of something unknown, which gives any amount equally badly; amounts that are known more exactly worse. Measured
 * likewise: recall at any grade −0.001 and +0.018, in the second generator calibration error +0.008 and −0.001.
 */
export const OPEN_FLOORS = { rate: -7, quantity: -5 };

/** The same of amounts of which calls determine the mix: half of what such guesses can lose. */
export const SOFT_OPEN_FLOOR = -4;

/** The same where hardly any of the calls were seen that would show the mix: the amount shows next to nothing. */
export const ASSUMED_FLOOR = -1;

/**
 * Nats that an amount is worth at most which agrees to the rounding of its row. Seven is what something unknown costs: an
 * exact amount is worth twice one within the usual noise.
 */
export const EXACT_MAX = 7;

/** How often calls that are all seen give the very count of a bill. */
export const COUNTED_EXACTLY = 0.5;

/**
 * Probability that a day with a deviation has something unknown, whatever explains the rest of it. Measured with 0.03, 0.05
 * and 0.1 on four companies of the third generator: recall of HIGH 0.358 each; of the second, precision of all grades
 * 0.977, 0.999 and 0.999.
 */
export const UNKNOWN_DAY = 0.05;

/** Nats that an amount costs at most where calls determine the mix: guesses of who used what never decide. */
export const SOFT_FLOOR = -8;

/** Nats of a quantity that the prediction leaves free. */
export const FREE = -4.5;

/** Nats of a class that the prediction leaves out. */
export const SILENT = -4;

/** Batches are counted up to a day apart from the end of their calls (providers’ batch documents: 24 hours). */
export const BATCH_SIGMA = 0.1;

/** Calls’ own sizes scatter by about their mean: the standard deviation of a call, as a multiple of the mean. */
export const CALL_SCATTER = 1.3;

/** Weight of a day’s own coverage against the series’ usual one. */
export const OWN_COVERAGE = 0.15;

/** Least standard deviation of a day’s coverage about the usual one. */
export const USUAL_SPREAD_MIN = 0.002;

/** Standard deviations above 100 % up to which a coverage can be a day’s own. */
export const USUAL_SPREADS = 3;

/** Added under a logarithm, so that nothing is not minus infinity. */
export const ALMOST_NOTHING = 1e-12;

/** Shares of calls seen that are tried: from this one */
export const COVERAGE_FROM = 0.01;

/** up to this one, a little above all that was billed. A quarter smaller: recall of HIGH +0.017 in the second generator. */
export const COVERAGE_TO = 1.05;

/** Least usual coverage of a series. */
export const USUAL_COVERAGE_MIN = 0.02;

/** Days from which on a series shows its own scatter: a week, since days of the week differ. */
export const SCATTER_DAYS_MIN = 7;

/** Bounds of the scatter that a series may show. */
export const SIGMA_MIN = 0.0015;

/** See SIGMA_MIN. */
export const SIGMA_MAX = 0.03;

/**
 * Standard deviation of a normal distribution ÷ the median of its absolute deviations. A quarter smaller: calibration error
 * +0.042 in the second generator.
 */
export const MEDIAN_TO_SIGMA = 1.4826;

/** Room above the measured scatter, since it is measured on the same days. Measured as the number above. */
export const SIGMA_ROOM = 1.3;

/** Meters of fewer cents a day show no scatter and no deviation. */
export const COUNTED_CENTS = 10;

/** Nats for a day on which a mistake begins or ends, against its being one like the others. */
export const EDGE = -3;

/**
 * A share is known to a few percent, an amount to a few parts in ten thousand: nats that the looser prediction costs.
 */
export const LOOSE = -4.5;

/** The same of a single share, which can be any. */
export const SINGLE = -5.5;

/** Nats for a wrong rate of the calls that were seen alone, against one of all that is billed. */
export const SEEN_ALONE = -3;

/** Amounts that differ by so many times their rounding are not the same. */
export const SURE_ROUNDINGS = 20;

/** Standard deviation of the shares of a day’s meters about their mean: hours have another mix of classes. */
export const SHARE_SIGMA = 0.15;

/** Several meters never change at the very same share, nor does one stay as it was while the others change. */
export const TOO_ALIKE = 0.002;

/** Hours of a day, by a clock that does not change. */
export const HOURS_OF_DAY = 24;

/** Share of the days with a part of a mistake on which it began the day before or goes on the day after. */
export const OPEN_WINDOWS = 0.8;

/** Share by which the hours of a line may count otherwise than the bill, and still show how its day was divided. */
export const HOUR_SLACK = 0.01;

// Evidence of a meter: shares of its amount or quantity

/** Standard deviation of amount ÷ (quantity × rate), where the bill has both. */
export const SHARP_SHARE = 0.0005;

/** The same where calls alone determine the mix of the quantity. */
export const SOFT_SHARE = 0.03;

/** Share of a cut-off answer’s tokens that may not have been seen. */
export const CUT_SHARE = 0.7;

/** Largest share of a class that cut-off answers leave open. */
export const CUT_SHARE_MAX = 0.5;

/** Share of the billed quantity by which the calls seen may differ and still show its mix. */
export const MIX_MISSED_MAX = 0.1;

// Explanations that compete: nats, and factors on priors

/** Least prior of the null. */
export const NULL_PRIOR_MIN = 0.5;

/** Calls go unseen for days, with or without anybody’s noticing: far more often than any mistake is made. */
export const UNSEEN_PRIOR = 0.01;

/** Nats that it costs that each use has a share of its own. */
export const OWN_SHARE = -1;

/** The number of calls that can have been made for each observed one. */
export const REPEATS = [2, 3];

/** A state is kept if some day makes it at most this far less likely than the best. */
export const KEPT_LOG = -9;

/** Above this the null leaves nothing to explain. */
export const NULL_IS_FINE = -2.5;

/** Nats of an explanation on a day without a deviation. */
export const NOTHING_SHOWS = -6;

/** Share of a count up to which two reports may round or cut days otherwise. */
export const SAME_REPORTS = 0.05;

/** Nats against everything that leaves two reports of the provider apart. */
export const CONTRADICTED = -10;

/** A variant whose amounts lose more does not give one of them. */
export const DOES_NOT_GIVE = -10;

/** Factor for a charge as a tier that was never used. */
export const UNUSED_TIER = 0.04;

/** Factor for a tier without its name: of the labels of a dearer tier that are known, each names it. */
export const NOT_NAMED = 0.02;

/** Factor for a part that is whatever the bill makes it: it predicts all that the whole predicts. */
export const SOME_PART = 0.3;

/** Rounds in which explanations that do not fit their run are taken out and the rest is judged again. */
export const REFUSALS_MAX = 6;

/** Probability from which on an explanation is a rival. */
export const RIVAL_MIN = 1e-4;

// Fewer calls than usual

/** Smaller drops below the usual share, in logarithms, are not reported */
export const LESS = 0.05;

/** nor those within this many standard deviations of the series */
export const SIGMAS = 6;

/** with this least standard deviation. */
export const LESS_SIGMA_MIN = 0.002;

/** A class of a smaller share of the day’s dollars decides nothing about them. */
export const FEWER_WEIGHS = 0.02;

// Doubts about runs of days

/** An exact amount shows a rate from this many roundings on. */
export const REPORTED_ROUNDINGS = 10;

/** An amount is as expected within this many standard deviations. */
export const RATE_SIGMAS = 3;

/** Odds of the provider’s mistake against our own price: between those that MEDIUM needs and those that HIGH does. */
export const UNDECIDED = 6;

/** Batch and flexible service cost half of the standard one (price lists of all four providers). */
export const CHEAPER = 0.5;

/** Room for the rounding of such a price. */
export const ROUNDING = 1.01;

/** One or two days may be off by scatter alone. */
export const DAYS_MIN = 3;

/** Share of its size by which a mistake of counting may miss the billed counts. */
export const MISSED_MAX = 0.25;

/**
 * The same for HIGH: as much as some calls’ count on the day beside, or an attempt that was not seen. A quarter larger: recall
 * of HIGH +0.020 in the second generator and +0.012 in the third, precision unchanged.
 */
export const MISSED_SURE = 0.05;

/**
 * Half of the days of one factor lie within this share of its logarithm. In companies of three generators, half of the days
 * of a provider's factor lay within 0.002 of it, and of what clients left out 0.039 apart or more.
 */
export const RATIO_SHARE = 0.03;

/** A count that is off by less than this share of a factor's logarithm is not under that factor. */
export const RIGHT_SHARE = 0.25;

/** Below this share of the usually seen calls an explanation needs missing calls besides. */
export const USUAL_SHARE = 0.8;

/** Days that have to show a discount before anything is held against it. */
export const UNTOLD_DISCOUNT_DAYS_MIN = 7;

// Limits of probabilities, and critical residuals

/** No explanation of a model of the world is surer than the model. */
export const CERTAINTY_MAX = 0.999;

/**
 * Parts of days, without a whole day of the same: some part of some mistake fits much. On ten seeds of each generator, 12 of 20
 * such findings were right. A quarter smaller: precision at any grade +0.059 in the first generator.
 */
export const PARTS_ALONE_MAX = 0.6;

/**
 * A person has to look before anything is claimed, so the grade of these kinds is LOW whatever the probability. On ten seeds of
 * each generator all 11 such findings were right: (11 + 1) ÷ (11 + 2).
 */
export const REVIEW_MAX = 0.92;

/** One amount a day: several mistakes, an old price and wrong counts of ours come to the same total. */
export const TOTALS_ALONE_MAX = 0.6;

/** One guess of several. */
export const GUESS_MAX = 0.55;

/** An unexplained day is critical above this many pico-dollars and */
export const CRITICAL_PICO = 100n * PICO_PER_USD;

/** above the billed amount ÷ this, */
export const CRITICAL_DIVISOR = 20n;

/** or this many standard deviations out */
export const CRITICAL_Z = 6;

/** from this many pico-dollars on, since cents may lie far out for days, */
export const FAR_PICO = 10n * PICO_PER_USD;

/** on this many days. */
export const CRITICAL_DAYS = 2;

// P(match), odds and the waterfall

/** Deviations up to so many times the mixture of missed calls are the coverage’s, not the charge’s. */
export const MIXTURES = 2;

/** Counts that are farther apart speak against a match (linkModels.ts); share. */
export const COUNTS_APART = 0.03;

/** Bits of one step of the waterfall. */
export const BITS_MAX = 60;

/** Odds beyond this mean no more. */
export const ODDS_MAX = 1e9;

// Gates of HIGH

/** Below this share of calls seen no quantity is wrong for sure. */
export const COVERAGE_MIN = 0.99;

/** Odds against the next explanation. */
export const ODDS_MIN = 20;

/**
 * Nothing may explain this part of what a mistake of counting explains: one in so many. A quarter smaller: recall of HIGH
 * +0.018 in the second generator, precision unchanged.
 */
export const REST_DIVISOR = 10n;

// Dollars

/** Deviations of quantities within this many standard deviations are scatter. */
export const SCATTER = 4;

/** Amounts within this part of quantity × rate are the bill’s own noise: one in so many. */
export const NOISE_DIVISOR = 2_000n;

/** Residuals of so many standard deviations are compared with other series. */
export const RESIDUAL_SIGMAS = 4;

// Two series of an account

/** Halves that differ by a larger share are no halves of one move. */
export const MISMATCH_MAX = 0.05;

/** Below this many pico-dollars a day’s residual is noise. */
export const DAY_MIN_PICO = 20_000_000_000n;

/** Days without use within one move: a week. */
export const MOVE_GAP_DAYS = 7n;

/** Probability of a move where not every answer is known to name its model: MEDIUM at most. */
export const NOT_ANSWERED_MAX = 0.8;

/** Probability from which on a move takes dollars that a series explains: that of HIGH. */
export const NEARLY_SURE = 0.95;

/** Days that agree within this share agree as well as counts ever do. */
export const CLOSE = 0.01;

/** Of the pairs that are tried, one in so many is a move: most residuals have no other half. */
export const TRIED = 10;

/** Probability that what one model has too much is by chance what another lacks: within a share, twice that share. */
export const BY_CHANCE = { close: 2 * CLOSE, far: 0.1 };

/** No agreement of counts is surer. */
export const AGREEMENT_MAX = 0.999;

// Use of suspect keys

/** Percent of the keys’ use within which a difference of the day’s counts is scatter. */
export const SHORT_PERCENT = 10n;

/** Below this many pico-dollars a day’s use is not separate from scatter. */
export const KEY_DAY_MIN_PICO = 10_000_000_000n;

/**
 * Share of the account’s days up to which the use of an unknown key is an event; above it, it is somebody’s daily
 * work.
 */
export const BURST = 0.5;

/** The bill names the key, and the organization the day on which it was revoked. */
export const AFTER_REVOCATION = 0.99;

// Length of runs

/** Percent of a series’ days from which on a run is how the series always is. */
export const MOST_PERCENT = 80n;

/** Days that an episode has at least */
export const EPISODE_DAYS_MIN = 5n;

/** and percent of the series’ days that it has at most. */
export const EPISODE_PERCENT_MAX = 40n;

// Counts of bill, usage report and calls: one part in so many, or percent

/** Days that hang together at most where costs are booked late: each books a part of itself on the next. */
export const DAYS_MAX = 4;

/** Counts of the bill and of its report that differ by less are the same. */
export const SAME_COUNT_PARTS = 500n;

/** A count within this part of a whole multiple is that multiple. */
export const TIMES_PARTS = 100n;

/** Moved quantities ÷ this may be unseen: else any division fits such a day. */
export const UNSEEN_MAX = 4n;

/** Two counts of the same requests or tokens differ by less: events that count too much, by more. */
export const ALIKE = 50n;

/** Meters’ ratios that differ by less are the same. */
export const SAME_RATIO_PARTS = 2_000n;

/** The same against observed counts, which scatter. */
export const SEEN_RATIO_PARTS = 300n;

/** Ratios outside this or its inverse are no price of the same thing. */
export const RATIO_MAX = 20n;

/** Discounts beyond this percent are no terms. */
export const DISCOUNT_PERCENT_MAX = 60n;

/** Discounts are agreed in whole halves of a percent. */
export const STEPS_PER_PERCENT = 2n;

/** Batch and the cheapest tiers cost half: a mixture with them is nowhere below. */
export const CHEAPEST_PERCENT = 50;

/** Discounts for cached input that providers have given at some time, as shares of the input rate (price lists). */
export const CACHE_SHARES = [
  ['1/2', 1n, 2n],
  ['1/4', 1n, 4n],
  ['1/10', 1n, 10n],
] as const;

/** Classes that grow by nearly the same share: four standard deviations of what counts usually differ by. */
export const ALIKE_PERCENT = 5n;

/** Meters of a smaller part of the day’s dollars decide nothing. */
export const WEIGHS_PARTS = 50n;

/** A day whose dollars differ by a smaller part is right. */
export const RIGHT_PARTS = 100n;

/** Classes’ shares that differ by less are one. */
export const ONE_SHARE_PERCENT = 3n;

/** Counts that differ by less are noise of the counting. */
export const NOISE_PERCENT = 1n;

/** Other classes are off by one share, which calls that were not seen leave, up to this. */
export const AGREE_PERCENT = 10n;

/** Percent of the observed quantity from which on the bill has more, or its inverse less. */
export const MORE_PERCENT = 102n;

/** See MORE_PERCENT. */
export const LESS_PERCENT = 98n;

/** Percent from which on output alone is off by more than counting is. */
export const OFF_PERCENT = 103n;

/** Tenths of the billed quantity from which on calls may have been sent twice. */
export const TWICE_TENTHS = 17n;

// Lengths, tiers and clients

/** Requests scatter by about their mean: of those with a mean this many times below the boundary none is near it. */
export const FAR_BELOW = 10;

/** Share of a line's usage that has to be seen, so that calls that were not seen are like the others. */
export const SHORT_SEEN_MIN = 0.5;

/** The same in calls of the day. */
export const SHORT_CALLS_MIN = 20;

/** Percent within which calls and bill agree on the tokens of a circumstance: midnight and cut answers make as much. */
export const CIRCUMSTANCE_PERCENT = 101n;

/** Percent of the billed input within which input is counted alike. */
export const COUNTED_ALIKE_PERCENT = 3n;
