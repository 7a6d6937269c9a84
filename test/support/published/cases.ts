/** Mistakes on bills that providers' users published, and those that price lists make easy. */
import {
  type Calls,
  type Class,
  type Day,
  type DayPrices,
  daysFrom,
  type Fault,
  type Line,
  type PublishedCase,
  type Rates,
  rateOf,
} from './case.js';

const SOL: Rates = { input: '5', cache_read: '0.5', cache_write_5m: '6.25', output: '30' };
const SOL_LONG: Rates = { input: '10', cache_read: '1', cache_write_5m: '12.5', output: '45' };
const TERRA_BEFORE: Rates = { input: '2.5', cache_read: '0.25', cache_write_5m: '3.125', output: '15' };
const TERRA: Rates = { input: '2', cache_read: '0.2', cache_write_5m: '2.5', output: '12' };
const BEDROCK_BEFORE: Rates = { input: '5.5', cache_read: '0.55', cache_write_5m: '6.875', output: '33' };
const BEDROCK: Rates = { input: '4.4', cache_read: '0.44', cache_write_5m: '5.5', output: '22' };
const MINI: Rates = { input: '0.25', cache_read: '0.025', output: '2' };
const HAIKU: Rates = {
  input: '1',
  cache_read: '0.1',
  cache_write_5m: '1.25',
  cache_write_1h: '2',
  output: '5',
};
const OPUS: Rates = {
  input: '5',
  cache_read: '0.5',
  cache_write_5m: '6.25',
  cache_write_1h: '10',
  output: '25',
};
const SONNET: Rates = {
  input: '3',
  cache_read: '0.3',
  cache_write_5m: '3.75',
  cache_write_1h: '6',
  output: '15',
};
const SONNET_LONG: Rates = {
  input: '6',
  cache_read: '0.6',
  cache_write_5m: '7.5',
  cache_write_1h: '12',
  output: '22.5',
};

/** Days with changing traffic; counts stay whole when a hundredth of them is taken. */
function daysOf(
  first: string,
  count: number,
  prices: DayPrices | ((day: string) => DayPrices),
  kinds: readonly (Omit<Calls, 'count'> & { count: number })[],
): Day[] {
  return daysFrom(first, count).map((day, index) => ({
    day,
    prices: typeof prices === 'function' ? prices(day) : prices,
    calls: kinds.map((kind) => ({ ...kind, count: kind.count + 100 * ((index * 3) % 5) })),
  }));
}

type Rerate = (line: Line, prices: DayPrices) => bigint;

function rerated(of: Omit<Fault, 'bill'>, rate: Rerate): Fault {
  return {
    ...of,
    bill: (lines, day) => lines.map((line) => ({ ...line, rate: rate(line, day.prices) })),
  };
}

const over = (kind: string, days: readonly string[], way?: string): Omit<Fault, 'bill'> => ({
  kind,
  ...(way === undefined ? {} : { way }),
  direction: 'overcharge',
  blame: 'provider',
  days,
});
const under = (kind: string, days: readonly string[], way?: string): Omit<Fault, 'bill'> => ({
  ...over(kind, days, way),
  direction: 'undercharge',
});

const ordinary = (prices: DayPrices, tokenClass: Class) =>
  rateOf(prices, tokenClass, { isBatch: false, isLong: false });

/** Billed input = fresh + read + written, while the cache's own meters are right. */
function countedTwice(lines: readonly Line[]): Line[] {
  const isCached = (line: Line) => line.tokenClass !== 'input' && line.tokenClass !== 'output';
  return lines.map((line) =>
    line.tokenClass === 'input'
      ? {
          ...line,
          quantity: lines.filter(isCached).reduce((sum, cached) => sum + cached.quantity, line.quantity),
        }
      : line,
  );
}

/** A tenth of the published usage: 1,553.1 M read, 146.4 M written, 1.97 M fresh. */
const TENTH_OF_PUBLISHED: Calls = {
  count: 1_000,
  each: { input: 197, cache_read: 155_310, cache_write_5m: 14_640, output: 880 },
};
const DOUBLE_METERED_FROM = '2026-07-18';
const DOUBLE_METERED_DAYS = daysFrom(DOUBLE_METERED_FROM, 10);
const CACHED_TWICE = {
  days: daysFrom('2026-07-10', 24).map(
    (day): Day => ({ day, prices: { ordinary: SOL, long: SOL_LONG }, calls: [TENTH_OF_PUBLISHED] }),
  ),
  fault: {
    ...over('cached_tokens_double_metered', DOUBLE_METERED_DAYS, 'reads_and_writes'),
    bill: countedTwice,
  },
  mirror: {
    ...under('cached_tokens_double_metered', DOUBLE_METERED_DAYS, 'cached_not_metered'),
    bill: (lines: readonly Line[]) =>
      lines.filter(({ tokenClass }) => tokenClass === 'input' || tokenClass === 'output'),
  },
  source:
    'Users of GPT-5.6 at Azure told in public in July 2026: 1,553.1 M cached and 146.4 M written tokens were billed a second time as input at 5 dollars, about 8,497 dollars too much beside 1.97 M fresh ones.',
};

const WORK: Omit<Calls, 'count'> = {
  each: { input: 9_000, cache_read: 40_000, cache_write_5m: 6_000, output: 1_500 },
};
const fromTo = (days: readonly Day[], first: string, count: number) =>
  daysFrom(first, count).filter((day) => days.some((one) => one.day === day));

const bedrockDays = daysOf(
  '2026-08-08',
  28,
  (day) => ({ ordinary: day < '2026-08-21' ? BEDROCK_BEFORE : BEDROCK }),
  [{ ...WORK, count: 2_000 }],
);
const terraDays = daysOf(
  '2026-07-16',
  30,
  (day) => ({ ordinary: day < '2026-07-30' ? TERRA_BEFORE : TERRA }),
  [{ ...WORK, count: 2_000 }],
);
const atRates =
  (rates: Rates): Rerate =>
  (line) =>
    rateOf({ ordinary: rates }, line.tokenClass, line);

const haikuDays = daysOf('2026-09-01', 24, { ordinary: HAIKU }, [
  { each: { input: 20_000, cache_read: 8_000, output: 2_500 }, isBatch: true, count: 3_000 },
  { each: { input: 12_000, cache_read: 8_000, output: 2_000 }, count: 2_000 },
]);
const miniDays = daysOf('2026-09-01', 24, { ordinary: MINI }, [
  { each: { input: 60_000, cache_read: 20_000, output: 9_000 }, isBatch: true, count: 3_000 },
  { each: { input: 40_000, cache_read: 20_000, output: 8_000 }, count: 2_000 },
]);
const BATCH_DAYS = daysFrom('2026-09-10', 7);
const noDiscount: Rerate = ({ tokenClass }, prices) => ordinary(prices, tokenClass);
const discountForAll: Rerate = ({ tokenClass }, prices) => ordinary(prices, tokenClass) / 2n;

const sonnetDays = daysOf('2026-09-01', 24, { ordinary: SONNET, long: SONNET_LONG }, [
  { each: { input: 60_000, cache_read: 30_000, output: 2_000 }, count: 1_000 },
  { each: { input: 260_000, cache_read: 30_000, output: 3_000 }, isLong: true, count: 200 },
]);
const solDays = daysOf('2026-07-10', 24, { ordinary: SOL, long: SOL_LONG }, [
  { each: { input: 60_000, cache_read: 30_000, output: 2_000 }, count: 1_000 },
  { each: { input: 260_000, cache_read: 40_000, output: 3_000 }, isLong: true, count: 200 },
]);
const asLong: Rerate = (line, prices) => rateOf(prices, line.tokenClass, { ...line, isLong: true });
const asOrdinary: Rerate = (line, prices) => rateOf(prices, line.tokenClass, { ...line, isLong: false });

/** Lines of one length on the meter of the other, at its rates. */
const onMeterOf =
  (isLong: boolean): Fault['bill'] =>
  (lines, day) => {
    const moved = lines.filter((line) => line.isLong !== isLong);
    const kept = lines.filter((line) => line.isLong === isLong);
    return [
      ...kept.map((line) => ({
        ...line,
        quantity: moved
          .filter(({ tokenClass }) => tokenClass === line.tokenClass)
          .reduce((sum, { quantity }) => sum + quantity, line.quantity),
        rate: rateOf(day.prices, line.tokenClass, { isBatch: false, isLong }),
      })),
    ];
  };

const opusDays = daysOf('2026-09-01', 24, { ordinary: OPUS }, [
  {
    each: { input: 6_000, cache_read: 50_000, cache_write_5m: 9_000, cache_write_1h: 4_000, output: 1_500 },
    count: 2_000,
  },
]);
const CACHE_DAYS = daysFrom('2026-09-09', 8);
const onlyOf =
  (tokenClass: Class, as: Class): Rerate =>
  (line, prices) =>
    line.tokenClass === tokenClass ? ordinary(prices, as) : line.rate;

const wholeFile = daysOf('2026-09-01', 24, { ordinary: SONNET }, [{ ...WORK, count: 2_000 }]);
const everyDay = wholeFile.map(({ day }) => day);

const inclusiveDays = daysOf('2026-07-10', 24, { ordinary: SOL, long: SOL_LONG }, [
  { ...WORK, count: 2_000 },
]);

/** Bedrock's announced price and the old one on its invoices; in every format of Bedrock's bills. */
const BEDROCK_DROP: Pick<PublishedCase, 'source' | 'provider' | 'model' | 'days' | 'fault' | 'mirror'> = {
  source:
    'Bedrock announced 4.4/22 instead of 5.5/33 dollars for openai.gpt-5.6-sol from 2026-08-21 on; users told that invoices of 2026-08-26 still had the old price.',
  provider: 'aws_bedrock',
  model: 'openai.gpt-5.6-sol',
  days: bedrockDays,
  fault: rerated(
    over('price_effective_date_mismatch', fromTo(bedrockDays, '2026-08-21', 6), 'not_yet'),
    atRates(BEDROCK_BEFORE),
  ),
  mirror: rerated(
    under('price_effective_date_mismatch', fromTo(bedrockDays, '2026-08-15', 6), 'too_early'),
    atRates(BEDROCK),
  ),
};

/** Published about Azure, so in every format of its bills; its users' agreement had the rates of those days. */
const AZURE_TWICE: Omit<PublishedCase, 'name' | 'format'> = {
  provider: 'azure_openai',
  model: 'gpt-5.6-sol',
  otherModel: 'gpt-5.6-luna',
  override: { model: 'gpt-5.6-sol', rates: SOL, fromDay: '2026-07-01' },
  ...CACHED_TWICE,
};

const LISTED = 'Price lists give both rates side by side; bills that took the wrong one were told in public.';

export const PUBLISHED_CASES: readonly PublishedCase[] = [
  {
    name: 'cached tokens of GPT-5.6 metered twice, as a file of azure_openai',
    format: 'plain_csv',
    ...AZURE_TWICE,
  },
  {
    name: 'cached tokens of GPT-5.6 metered twice, as cost details of Azure',
    format: 'azure_cost_details',
    ...AZURE_TWICE,
  },
  {
    name: 'cached tokens of GPT-5.6 metered twice, as an answer of Azure Cost Management',
    format: 'azure_query_pages',
    ...AZURE_TWICE,
  },
  {
    name: 'cached tokens of GPT-5.6 metered twice, as pages of OpenAI',
    provider: 'openai',
    format: 'openai_pages',
    model: 'gpt-5.6-sol',
    ...CACHED_TWICE,
  },
  {
    name: 'a price drop that invoices ignored, as a file of aws_bedrock',
    format: 'plain_csv',
    ...BEDROCK_DROP,
  },
  {
    name: 'a price drop that invoices ignored, as a Cost and Usage Report of AWS',
    format: 'aws_cur2',
    ...BEDROCK_DROP,
  },
  {
    name: 'a price drop that invoices ignored, as an answer of AWS Cost Explorer',
    format: 'aws_ce_pages',
    ...BEDROCK_DROP,
  },
  {
    name: 'a price drop that the bill ignored, as pages of OpenAI',
    source: 'OpenAI lists gpt-5.6-terra at 2/12 dollars since 2026-07-30, before at 2.5/15.',
    provider: 'openai',
    format: 'openai_pages',
    model: 'gpt-5.6-terra',
    days: terraDays,
    fault: rerated(
      over('price_effective_date_mismatch', fromTo(terraDays, '2026-07-30', 7), 'not_yet'),
      atRates(TERRA_BEFORE),
    ),
    mirror: rerated(
      under('price_effective_date_mismatch', fromTo(terraDays, '2026-07-23', 7), 'too_early'),
      atRates(TERRA),
    ),
  },
  {
    name: 'cents read as dollars, as a file of anthropic',
    source:
      'Anthropic’s cost report gives amounts as texts in cents; tools that took them for dollars were told in public to show a hundredfold.',
    provider: 'anthropic',
    format: 'plain_csv',
    model: 'claude-sonnet-4-5',
    days: wholeFile,
    fault: {
      kind: 'client_metering_error',
      way: 'cents_as_dollars',
      direction: 'overcharge',
      blame: 'own',
      days: everyDay,
      bill: (lines) => lines.map((line) => ({ ...line, rate: line.rate * 100n })),
    },
    mirror: {
      kind: 'client_metering_error',
      way: 'dollars_as_cents',
      direction: 'undercharge',
      blame: 'own',
      days: everyDay,
      bill: (lines) => lines.map((line) => ({ ...line, rate: line.rate / 100n })),
    },
  },
  {
    name: 'batches without their discount, as pages of Anthropic',
    source: `Anthropic documents batches at half of every rate. ${LISTED}`,
    provider: 'anthropic',
    format: 'anthropic_pages',
    model: 'claude-haiku-4-5',
    days: haikuDays,
    fault: rerated(over('batch_discount_not_applied', BATCH_DAYS, 'standard_rate'), noDiscount),
    mirror: rerated(under('batch_discount_not_applied', BATCH_DAYS, 'batch_rate'), discountForAll),
  },
  {
    name: 'batches without their discount, as pages of OpenAI',
    source: `OpenAI documents batches at half of every rate; its bill has one line for batch and standard calls. ${LISTED}`,
    provider: 'openai',
    format: 'openai_pages',
    model: 'gpt-5-mini',
    days: miniDays,
    fault: rerated(over('batch_discount_not_applied', BATCH_DAYS, 'standard_rate'), noDiscount),
    mirror: rerated(under('batch_discount_not_applied', BATCH_DAYS, 'batch_rate'), discountForAll),
  },
  {
    name: 'short requests at the rates of long ones, as pages of Anthropic',
    source: `Anthropic lists claude-sonnet-4-5 above 200,000 input tokens at 6/22.5 instead of 3/15 dollars. ${LISTED}`,
    provider: 'anthropic',
    format: 'anthropic_pages',
    model: 'claude-sonnet-4-5',
    days: sonnetDays,
    fault: rerated(over('long_context_rate_misapplied', BATCH_DAYS, 'long_rate_on_ordinary'), asLong),
    mirror: rerated(under('long_context_rate_misapplied', BATCH_DAYS, 'ordinary_rate_on_long'), asOrdinary),
  },
  {
    name: 'short requests on the line of long ones, as pages of OpenAI',
    source: `OpenAI lists gpt-5.6-sol above 272,000 input tokens at twice the input and one and a half times the output rate, on a line of its own. ${LISTED}`,
    provider: 'openai',
    format: 'openai_pages',
    model: 'gpt-5.6-sol',
    days: solDays,
    fault: {
      ...over('long_context_rate_misapplied', daysFrom('2026-07-19', 7), 'in_long_meter'),
      bill: onMeterOf(true),
    },
    mirror: {
      ...under('long_context_rate_misapplied', daysFrom('2026-07-19', 7), 'in_ordinary_meter'),
      bill: onMeterOf(false),
    },
  },
  {
    name: 'cache writes of five minutes at the rate of an hour, as pages of Anthropic',
    source: `Anthropic lists cache writes at 1.25 times the input rate for five minutes and at twice for an hour. ${LISTED}`,
    provider: 'anthropic',
    format: 'anthropic_pages',
    model: 'claude-opus-5',
    days: opusDays,
    fault: rerated(
      over('cache_write_rate_mismatch', CACHE_DAYS, 'at_1h_rate'),
      onlyOf('cache_write_5m', 'cache_write_1h'),
    ),
    mirror: rerated(
      under('cache_write_rate_mismatch', CACHE_DAYS, 'at_5m_rate'),
      onlyOf('cache_write_1h', 'cache_write_5m'),
    ),
  },
  {
    name: 'tokens read from the cache at the rate of input, as pages of Anthropic',
    source: `Anthropic lists tokens read from the cache at a tenth of the input rate. ${LISTED}`,
    provider: 'anthropic',
    format: 'anthropic_pages',
    model: 'claude-opus-5',
    days: opusDays,
    fault: rerated(over('cache_read_rate_mismatch', CACHE_DAYS, 'input_rate'), onlyOf('cache_read', 'input')),
    mirror: rerated(
      under('cache_read_rate_mismatch', CACHE_DAYS, 'input_at_read_rate'),
      onlyOf('input', 'cache_read'),
    ),
  },
  {
    name: 'tokens read from the cache at the rate of input, as pages of OpenAI',
    source: `OpenAI lists cached input of gpt-5.6-sol at a tenth of the input rate. ${LISTED}`,
    provider: 'openai',
    format: 'openai_pages',
    model: 'gpt-5.6-sol',
    days: inclusiveDays,
    fault: rerated(
      over('cache_read_rate_mismatch', daysFrom('2026-07-18', 8), 'input_rate'),
      onlyOf('cache_read', 'input'),
    ),
    mirror: rerated(
      under('cache_read_rate_mismatch', daysFrom('2026-07-18', 8), 'input_at_read_rate'),
      onlyOf('input', 'cache_read'),
    ),
  },
  {
    name: 'input sent with the cached tokens in it, as pages of OpenAI',
    source:
      'OpenAI’s usage counts cached tokens inside the input; clients that send them again beside it were told in public to doubt right bills.',
    provider: 'openai',
    format: 'openai_pages',
    model: 'gpt-5.6-sol',
    days: inclusiveDays,
    fault: {
      kind: 'client_metering_error',
      way: 'input_includes_cached',
      direction: 'undercharge',
      blame: 'own',
      days: inclusiveDays.map(({ day }) => day),
      bill: (lines) => [...lines],
    },
    mirror: 'The bill is right: there is nothing on it that could be turned round.',
    told: ({ each }) => ({
      ...each,
      input: (each.input ?? 0) + (each.cache_read ?? 0) + (each.cache_write_5m ?? 0),
    }),
  },
];
