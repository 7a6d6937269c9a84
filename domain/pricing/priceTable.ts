/**
 * The public table: one price for each model family, as client wrappers use it to estimate.
 */
import type { Pico } from '../money.js';
import type { PriceBook } from './priceBook.js';
import { holdsAt, type PricedModel } from './pricedModel.js';
import { STANDARD_TIER } from './rateCards.js';

/** The cache rates of the table that may be assumed, under their names there. */
export type TableCacheRate = 'cache_read' | 'cache_creation';

export interface TableRow {
  readonly family: string;
  readonly priced: PricedModel;
  /** Pico-dollars per million tokens, never unknown. */
  readonly input: Pico;
  readonly output: Pico;
  readonly cacheRead: Pico;
  /** The ordinary (5-minute) write. */
  readonly cacheCreation: Pico;
  /** Rates that no source gives: the input rate stands in for them. */
  readonly assumed: readonly TableCacheRate[];
}

/** A date as ids carry it: a day, or a month of two digits and a year. */
const DAY_IN_ID = /(20\d{2})-?(0[1-9]|1[0-2])-?(0[1-9]|[12]\d|3[01])(?!\d)/;
const MONTH_IN_ID = /(?<!\d)(2[3-9]|3\d)(0[1-9]|1[0-2])(?!\d)/;

/** The rows in force at a time, by family. */
export function priceTable(book: PriceBook, atMicros: bigint): TableRow[] {
  const byFamily = new Map<string, PricedModel[]>();
  for (const priced of book.periods()) {
    if (!holdsAt(priced, atMicros)) continue;
    const family = priced.entry.canonicalFamily;
    const members = byFamily.get(family);
    if (members) members.push(priced);
    else byFamily.set(family, [priced]);
  }
  return [...byFamily]
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([family, members]) => rowOf(family, speakerOf(family, members)));
}

/**
 * The entry that speaks for a family: the maker's whose model is the family, else the maker's with the newest date in
 * its id, else the maker's that carries the family as an alias, else the maker's first, else the first of all.
 */
function speakerOf(family: string, members: readonly PricedModel[]): PricedModel {
  const own = members.filter(({ entry }) => entry.firstParty);
  const dated = own
    .map((priced) => ({ priced, date: dateInId(priced.entry.model) }))
    .filter(({ date }) => date !== '')
    .sort((left, right) => (left.date < right.date ? 1 : left.date > right.date ? -1 : 0));
  const speaker =
    own.find(({ entry }) => entry.model === family) ??
    dated[0]?.priced ??
    own.find(({ entry }) => entry.aliases.includes(family)) ??
    own[0] ??
    members[0];
  if (!speaker) throw new RangeError('a family has a member');
  return speaker;
}

/** `YYYYMM` or `YYYYMMDD`, so that texts compare as dates; '' without one. */
function dateInId(model: string): string {
  const day = DAY_IN_ID.exec(model);
  if (day) return day.slice(1).join('');
  const month = MONTH_IN_ID.exec(model);
  return month ? `20${month.slice(1).join('')}` : '';
}

function rowOf(family: string, priced: PricedModel): TableRow {
  const card = priced.cards.get(STANDARD_TIER)?.flat;
  if (!card) throw new RangeError('a price period has standard rates');
  const { classes } = card;
  const assumed: TableCacheRate[] = [];
  if (classes.cache_read.gap !== undefined) assumed.push('cache_read');
  if (classes.cache_write_5m.gap !== undefined) assumed.push('cache_creation');
  return {
    family,
    priced,
    input: classes.input.rate,
    output: classes.output.rate,
    cacheRead: classes.cache_read.rate,
    cacheCreation: classes.cache_write_5m.rate,
    assumed,
  };
}
