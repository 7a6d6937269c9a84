/** A file with prices that is fetched daily. */
export interface PriceFeed {
  /** As people see it: litellm, models.dev, or the address without its query. */
  readonly name: string;
  readonly url: string;
}

/** Most feeds of an installation. */
export const PRICE_FEEDS_MAX = 10;
const FEED_NAME_CHARS_MAX = 256;
const KNOWN_FEEDS: ReadonlyMap<string, string> = new Map([
  ['litellm', 'https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json'],
  ['models.dev', 'https://models.dev/api.json'],
]);

/** undefined: neither a known name nor an https address. */
export function readPriceFeed(text: string): PriceFeed | undefined {
  const known = KNOWN_FEEDS.get(text);
  if (known !== undefined) return { name: text, url: known };
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.protocol !== 'https:' || url.username !== '' || url.password !== '') return undefined;
  return { name: `${url.origin}${url.pathname}`.slice(0, FEED_NAME_CHARS_MAX), url: url.href };
}
