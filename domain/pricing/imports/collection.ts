/**
 * What a public price collection says, in the product's own terms: the common ground of the readers of LiteLLM's and
 * models.dev's files. Collections are third parties' facts; what they say is compared and asked about, never taken
 * blindly (docs/decisions/0007).
 */
import { ExactNumber, type PageObject, type PageValue } from '../../billing/exactNumber.js';
import { type Pico, parseScaled } from '../../money.js';
import type { Provider } from '../../providers.js';
import type { PriceMode, PriceTier, RateClass, Rates } from '../prices.js';
import { RATE_CLASSES, RATE_PER_MTOK_USD_MAX } from '../prices.js';

/** The public price collections that can be imported. */
export const PRICE_COLLECTIONS = ['litellm', 'models_dev'] as const;
export type PriceCollection = (typeof PRICE_COLLECTIONS)[number];

/** One model as a collection lists it. */
export interface ListedModel {
  readonly provider: Provider;
  /** The provider's own id. */
  readonly model: string;
  /** The key in the file. */
  readonly key: string;
  /** The place that the price is for, where it is not the ordinary one: looked through, never taken. */
  readonly region: string | null;
  readonly rates: Rates;
  /** Each has an input and an output rate, its own or the standard one's. */
  readonly tiers: readonly PriceTier[];
  readonly mode: PriceMode;
  readonly contextWindow: number | null;
}

/** A file, read. */
export interface ListedCollection {
  readonly source: PriceCollection;
  readonly models: readonly ListedModel[];
  /** Entries that are no token prices of the eight providers. */
  readonly otherEntries: number;
}

const RATE_MAX: Pico = BigInt(RATE_PER_MTOK_USD_MAX) * 10n ** 12n;

/** A rate in dollars per token or per million of them; `digits` shifts its point to pico-dollars per million. */
export function readRate(value: PageValue | undefined, digits: number, place: string): Pico | null {
  if (value === undefined || value === null) return null;
  const text = value instanceof ExactNumber ? value.text : undefined;
  const fine = text === undefined ? undefined : parseScaled(text, digits + 12);
  const rate = fine === undefined ? undefined : parseScaled(text ?? '', digits);
  if (fine === undefined || rate === undefined || fine < 0n || rate > RATE_MAX)
    throw new RangeError(
      `${place} is not a rate: a number from 0 to ${RATE_PER_MTOK_USD_MAX} dollars per million tokens`,
    );
  return rate;
}

export function readTokens(value: PageValue | undefined): number | null {
  const tokens = value instanceof ExactNumber ? Number(value.text) : Number.NaN;
  return Number.isSafeInteger(tokens) && tokens > 0 ? tokens : null;
}

export function readObject(value: PageValue | undefined, place: string): PageObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber))
    return value;
  throw new RangeError(`${place} is not an object`);
}

/** Rates with null for what is not given; a cache or audio rate of zero is no information (data/README.md). */
export function ratesFrom(given: Readonly<Partial<Record<RateClass, Pico | null>>>): Rates {
  return Object.fromEntries(
    RATE_CLASSES.map((name) => {
      const rate = given[name] ?? null;
      return [name, rate === 0n && name !== 'input' && name !== 'output' ? null : rate];
    }),
  ) as Record<RateClass, Pico | null>;
}

/** A tier from the rates that are given for it; classes that it leaves out are billed at the standard rate. */
export function tierFrom(
  place: { serviceTier: string | null; aboveInputTokens: number | null },
  given: Readonly<Partial<Record<RateClass, Pico | null>>>,
  standard: Rates,
): PriceTier {
  const rates = ratesFrom(given);
  return {
    ...place,
    checkedOn: null,
    rates: { ...rates, input: rates.input ?? standard.input, output: rates.output ?? standard.output },
  };
}

/** Models of OpenAI on Azure; others there are not covered (data/README.md). */
export function isOpenAiModel(id: string): boolean {
  return /^(?:gpt-|o\d|chatgpt|codex|text-embedding|computer-use|ft:)/.test(id);
}
