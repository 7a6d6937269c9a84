/** The named sets of worlds: what is planted in each, and when its days are. */
import { dayNumber } from '../support/days.js';
import type { Random } from '../support/random.js';
import { EFFECTIVE_DATES, OVERCHARGES, UNDERCHARGES } from './mistakes/index.js';
import type { Kind } from './mistakes/mistake.js';

export const SETS = [
  'mixed',
  'benign_only',
  'catalog_errors',
  'otlp_only',
  'priority_tier',
  'credits',
  'month_edge',
  'effective_dates',
  'undercharges',
] as const;
export type FirstSet = (typeof SETS)[number];

export interface Recipe {
  /** Share of the series in which a mistake is planted. */
  mistakes: number;
  /** Of these, the share that the provider loses by. */
  undercharged: number;
  /** Share of the series that something benign happens to. */
  confounders: number;
  overcharges: readonly Kind[];
  undercharges: readonly Kind[];
  /** Share of the models whose price in the list is wrong. */
  wrongPrices: number;
  /** Providers whose days are Pacific ones. */
  pacific: readonly string[];
  /** All clients tell cached tokens as plain input. */
  lacksCache: boolean;
  /** Anthropic's priority tier is used: in the usage report, not in the costs. */
  hasPriorityTier: boolean;
  /** Days with a credit line, and whether the bill lost the minus sign. */
  credits: { perAccount: number; hasLostSign: boolean };
  lastDay: number;
}

const MIXED: Omit<Recipe, 'lastDay'> = {
  mistakes: 0.3,
  undercharged: 0.22,
  confounders: 0.26,
  overcharges: OVERCHARGES,
  undercharges: UNDERCHARGES,
  wrongPrices: 0.06,
  // Google's billing day is the Pacific one.
  pacific: ['google'],
  lacksCache: false,
  hasPriorityTier: false,
  credits: { perAccount: 1, hasLostSign: false },
};

const CHANGES: Record<FirstSet, Partial<Omit<Recipe, 'lastDay'>>> = {
  mixed: {},
  benign_only: { mistakes: 0, confounders: 0.6 },
  catalog_errors: { wrongPrices: 0.2 },
  otlp_only: { lacksCache: true },
  priority_tier: { hasPriorityTier: true },
  credits: { credits: { perAccount: 4, hasLostSign: true } },
  month_edge: { pacific: ['google', 'openai'] },
  effective_dates: {
    overcharges: EFFECTIVE_DATES,
    undercharges: EFFECTIVE_DATES,
    confounders: 0.1,
    wrongPrices: 0,
  },
  undercharges: { undercharged: 1 },
};

/** A set's recipe. The last day is drawn, but where the set is about certain days. */
export function recipeOf(set: FirstSet, random: Random): Recipe {
  const drawn = dayNumber('2026-10-10') + random.whole(0, 36);
  const fixed: Partial<Record<FirstSet, number>> = {
    // Both ends of the month and the end of summer time on 1 November.
    month_edge: dayNumber('2026-11-12'),
    // The cuts of 30 July and 21 August.
    effective_dates: dayNumber('2026-09-12'),
  };
  return { ...MIXED, ...CHANGES[set], lastDay: fixed[set] ?? drawn };
}
