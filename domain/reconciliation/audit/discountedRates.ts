import { divideHalfEven } from '../../money.js';
import type { PriceBook } from '../../pricing/priceBook.js';
import type { Provider } from '../../providers.js';
import { DayRates } from './dayRates.js';

const HALVES = 200n;

/** The prices of a provider's day, all lower by so many percent, in halves: terms that nobody entered. */
export class DiscountedRates extends DayRates {
  readonly #left: bigint;

  constructor(book: PriceBook, provider: Provider, dayMicros: bigint, percent: number) {
    super(book, provider, dayMicros);
    this.#left = HALVES - BigInt(Math.round(percent * 2));
  }

  override rate(...asked: Parameters<DayRates['rate']>): ReturnType<DayRates['rate']> {
    const found = super.rate(...asked);
    return found && { ...found, rate: divideHalfEven(found.rate * this.#left, HALVES) };
  }
}
