/**
 * Plans a world: the series with a mistake and its time, the series with a confounder, and the wrong prices of the
 * list.
 */
import { priceListEntry, type WrongPrice } from '../bills/priceListEntry.js';
import { type BookModel, RATE_BOOK } from '../bills/rateBook.js';
import { DAY_SECONDS, dayNumber, HOUR_SECONDS } from '../support/days.js';
import { Random } from '../support/random.js';
import { lotOf, type Window } from './booking.js';
import { CONFOUNDERS, type Confounder, type Registry, withoutCache } from './confounders.js';
import type { Mistake } from './mistakes/mistake.js';
import { drawSeries, type FirstSize, type Series } from './series.js';
import type { FirstSet, Recipe } from './sets.js';

export interface PlantedMistake {
  series: Series;
  mistake: Mistake;
  /** Times of the booking, Unix seconds; the end is exclusive. */
  startSeconds: number;
  endSeconds: number;
}

export interface Plan {
  recipe: Recipe;
  series: Series[];
  mistakes: PlantedMistake[];
  confounders: { series: Series; confounder: Confounder }[];
  /** Models with a wrong price in the list. */
  wrongPrices: { book: BookModel; wrong: WrongPrice }[];
  contracts: object[];
  priceListChanges: object[];
  registry: Registry;
}

export function planWorld(
  seed: number,
  set: FirstSet,
  recipe: Recipe,
  size: FirstSize,
  window: Window,
): Plan {
  const random = new Random(seed, set, 'plan');
  const plan: Plan = {
    recipe,
    series: drawSeries(new Random(seed, 'series'), size),
    mistakes: [],
    confounders: [],
    wrongPrices: [],
    contracts: [],
    priceListChanges: [],
    registry: { unregistered: new Set() },
  };
  agreeContracts(plan, random, window);
  mistakePrices(plan, random);
  if (recipe.hasPriorityTier) usePriorityTier(plan);
  if (recipe.lacksCache)
    for (const { circumstances } of plan.series)
      Object.assign(circumstances, { told: withoutCache, lacksCache: true });
  plantMistakes(plan, random, window);
  confound(plan, random, window);
  return plan;
}

/** Plans one contract discount at each of the two large providers, for one of their models. */
function agreeContracts(plan: Plan, random: Random, window: Window): void {
  for (const provider of ['openai', 'anthropic']) {
    const book = random.pick(RATE_BOOK.filter((model) => model.provider === provider));
    const perMille = random.pick([780, 850, 900, 925]);
    for (const series of plan.series) if (series.book === book) series.contractPerMille = perMille;
    plan.contracts.push({
      provider,
      model: book.model,
      discount_percent: String((1_000 - perMille) / 10),
      effective_from: new Date((window.firstDay - 90) * DAY_SECONDS * 1_000).toISOString().slice(0, 10),
      effective_to: null,
      source: { document: `Order form ${provider}-2026`, clause: '3.2', url: null },
    });
  }
}

/**
 * Plans stale or wrong list entries with the listings of their sources. Models with a contract keep the right
 * entry.
 */
function mistakePrices(plan: Plan, random: Random): void {
  const agreed = new Set(plan.series.filter((one) => one.contractPerMille !== 1_000).map((one) => one.book));
  const used = RATE_BOOK.filter((book) => !agreed.has(book) && plan.series.some((one) => one.book === book));
  const count = Math.round(plan.recipe.wrongPrices * RATE_BOOK.length);
  for (const book of random.shuffled(used).slice(0, count)) {
    const factor = random.pick([0.5, 0.625, 0.8, 1.25, 1.5]);
    const only = random.chance(0.6) ? undefined : random.pick([1, 4]);
    const factors = [0, 1, 2, 3, 4].map((at) => (only === undefined || only === at ? factor : 1));
    const wrong: WrongPrice = {
      factors,
      agreement: random.pick(['agree', 'agree', 'single_source', 'disagree']),
    };
    plan.wrongPrices.push({ book, wrong });
    plan.priceListChanges.push(priceListEntry(book, wrong));
  }
}

const PRIORITY_SHARE = 0.3;

function usePriorityTier(plan: Plan): void {
  for (const series of plan.series) {
    if (series.provider !== 'anthropic') continue;
    series.circumstances.isPaidAhead = (call) => !call.isBatch && lotOf(call, 11) < PRIORITY_SHARE;
  }
}

const hasWrongPrice = (plan: Plan, series: Series): boolean =>
  plan.wrongPrices.some(({ book }) => book === series.book);

function plantMistakes(plan: Plan, random: Random, window: Window): void {
  const { recipe } = plan;
  const free = new Set(plan.series.filter((series) => !hasWrongPrice(plan, series)));
  const wanted = Math.round(recipe.mistakes * plan.series.length);
  const turns = { over: random.shuffled(recipe.overcharges), under: random.shuffled(recipe.undercharges) };
  for (let at = 0; at < wanted; at += 1) {
    const isUnder = at % 100 < 100 && (at * 61) % 100 < recipe.undercharged * 100;
    const kinds = isUnder ? turns.under : turns.over;
    const planted = plantOne(kinds, [...free], random, window);
    if (!planted) continue;
    // A kind repeats only after all others were used.
    kinds.push(...kinds.splice(kinds.indexOf(planted.kind), 1));
    plan.mistakes.push(planted.one);
    free.delete(planted.one.series);
    if (planted.one.mistake.partner) free.delete(planted.one.mistake.partner);
  }
}

const DAYS_LOW = 2;
const DAYS_HIGH = 25;

function plantOne(
  kinds: readonly Recipe['overcharges'][number][],
  free: Series[],
  random: Random,
  window: Window,
) {
  for (const kind of kinds) {
    for (const series of random.shuffled(free)) {
      const neighbours = free.filter(
        (other) =>
          other !== series && other.provider === series.provider && other.accountId === series.accountId,
      );
      const mistake = kind(series, {
        random,
        firstDay: window.firstDay,
        lastDay: window.lastDay,
        neighbours,
      });
      if (mistake) return { kind, one: { series, mistake, ...runOf(mistake, series, random, window) } };
    }
  }
  return undefined;
}

/** A run of 2 to 25 days that may begin and end at any hour. */
function runOf(mistake: Mistake, series: Series, random: Random, window: Window) {
  const length = random.whole(
    DAYS_LOW,
    Math.min(mistake.daysHigh ?? DAYS_HIGH, window.lastDay - window.firstDay - 3),
  );
  const hours = mistake.isWholeDays ? 0 : 1;
  let day = random.whole(window.firstDay + 1, window.lastDay - length + 1);
  const cut = series.book.periods
    .map((period) => (period.from ? dayNumber(period.from) : 0))
    .find((at) => at > window.firstDay && at < window.lastDay - length);
  // If a price changes within the days, the mistake begins or ends with the change.
  if (mistake.cause === 'price_effective_date_mismatch' && cut !== undefined)
    day = mistake.form === 'new_price_before_cut' ? Math.max(window.firstDay + 1, cut - length) : cut;
  const startSeconds = day * DAY_SECONDS + hours * random.whole(0, 23) * HOUR_SECONDS;
  const end = startSeconds + length * DAY_SECONDS - hours * random.whole(0, 23) * HOUR_SECONDS;
  return { startSeconds: cut === day ? day * DAY_SECONDS : startSeconds, endSeconds: end };
}

function confound(plan: Plan, random: Random, window: Window): void {
  const taken = new Set(plan.mistakes.flatMap((one) => [one.series, one.mistake.partner]));
  const free = plan.series.filter((series) => !taken.has(series) && !hasWrongPrice(plan, series));
  const wanted = Math.round(plan.recipe.confounders * plan.series.length);
  const kinds = random.shuffled(CONFOUNDERS);
  for (const [at, series] of random.shuffled(free).slice(0, wanted).entries()) {
    for (let turn = 0; turn < kinds.length; turn += 1) {
      const confounder = kinds[(at + turn) % kinds.length]?.(series, window, random, plan.registry);
      if (!confounder) continue;
      plan.confounders.push({ series, confounder });
      break;
    }
  }
}
