/** The named sets of worlds: what is planted in each, and the days that it covers. */
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
  /** Share of the series with a planted mistake. */
  mistakes: number;
  /** Share of the mistakes that are undercharges. */
  undercharged: number;
  /** Share of the series with a confounder. */
  confounders: number;
  overcharges: readonly Kind[];
  undercharges: readonly Kind[];
  /** Share of the models with a wrong price in the list. */
  wrongPrices: number;
  /** Providers whose billing days are Pacific days. */
  pacific: readonly string[];
  /** All clients report cached tokens as plain input. */
  lacksCache: boolean;
  /** Anthropic's priority tier is used; it is in the usage report but not in the costs. */
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
  // Google's billing day is a Pacific day.
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

/** A set's recipe. The last day is random, unless the set concerns certain days. */
export function recipeOf(set: FirstSet, random: Random): Recipe {
  const drawn = dayNumber('2026-10-10') + random.whole(0, 36);
  const fixed: Partial<Record<FirstSet, number>> = {
    // Covers both ends of a month and the end of summer time on 1 November.
    month_edge: dayNumber('2026-11-12'),
    // Covers the price cuts of 30 July and 21 August.
    effective_dates: dayNumber('2026-09-12'),
  };
  return { ...MIXED, ...CHANGES[set], lastDay: fixed[set] ?? drawn };
}
