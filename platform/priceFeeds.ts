import { z } from 'zod';

/** A file with prices that is fetched daily. */
export interface PriceFeed {
  /** As people see it: litellm, models.dev, or the address without its query. */
  readonly name: string;
  readonly url: string;
}

/** Most feeds of an installation. */
const PRICE_FEEDS_MAX = 10;
const FEED_NAME_CHARS_MAX = 256;
const KNOWN_FEEDS: ReadonlyMap<string, string> = new Map([
  ['litellm', 'https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json'],
  ['models.dev', 'https://models.dev/api.json'],
]);

/** undefined: neither a known name nor an https address. */
function readPriceFeed(text: string): PriceFeed | undefined {
  const known = KNOWN_FEEDS.get(text);
  if (known !== undefined) return { name: text, url: known };
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.protocol !== 'https:' || url.username !== '' || url.password !== '') return undefined;
  return { name: `${url.origin}${url.pathname}`.slice(0, FEED_NAME_CHARS_MAX), url: url.href };
}

/** The setting PRICE_FEEDS, as platform/settings.ts lists it. */
export const PRICE_FEEDS_SETTING = {
  schema: z
    .string()
    .transform((text) =>
      text
        .split(',')
        .map((word) => word.trim())
        .filter((word) => word !== '')
        .map(readPriceFeed),
    )
    .pipe(z.array(z.custom<PriceFeed>((feed) => feed !== undefined)).max(PRICE_FEEDS_MAX))
    .refine((feeds) => new Set(feeds.map(({ url }) => url)).size === feeds.length)
    .default([]),
  shownDefault: '(none)',
  meaning:
    'Public price lists that are fetched daily; differences become proposals on the Prices screen. The names litellm and models.dev, or https addresses of files in these forms, with commas between.',
  remedy: `give at most ${PRICE_FEEDS_MAX} different names or https addresses, for example PRICE_FEEDS=litellm,models.dev`,
};
