/** A published case's bill as its provider writes it. */
import {
  amountOf,
  billedLines,
  type Class,
  type Day,
  type Line,
  type PublishedCase,
  rightLines,
  shiftDay,
} from './case.js';

/** A file of one feed. */
export interface Document {
  feed: 'cost' | 'usage';
  text: string;
}

export function documentsOf(one: PublishedCase): Document[] {
  switch (one.format) {
    case 'openai_pages':
      return [
        { feed: 'cost', text: openaiPage(one, openaiCosts) },
        { feed: 'usage', text: openaiPage(one, openaiUsage) },
      ];
    case 'anthropic_pages':
      return [
        { feed: 'cost', text: anthropicPage(one, anthropicCosts) },
        { feed: 'usage', text: anthropicPage(one, anthropicUsage) },
      ];
    case 'aws_cur2':
      return [{ feed: 'cost', text: costAndUsageReport(one) }];
    case 'aws_ce_pages':
      return [{ feed: 'cost', text: costExplorerAnswer(one) }];
    case 'azure_cost_details':
      return [{ feed: 'cost', text: costDetails(one) }];
    case 'azure_query_pages':
      return [{ feed: 'cost', text: queryAnswer(one) }];
    case 'plain_csv':
      return [{ feed: 'cost', text: plainCsv(one) }];
  }
}

/** Pico-dollars as dollars; `digits` 10: cents. */
function decimal(scaled: bigint, digits = 12): string {
  const text = scaled.toString().padStart(digits + 1, '0');
  const fraction = text.slice(-digits).replace(/0+$/, '');
  return `${text.slice(0, -digits)}${fraction === '' ? '' : `.${fraction}`}`;
}

function groupLines(lines: readonly Line[], keyOf: (line: Line) => string): Line[][] {
  const groups = new Map<string, Line[]>();
  for (const line of lines) groups.set(keyOf(line), [...(groups.get(keyOf(line)) ?? []), line]);
  return [...groups.values()];
}

const quantityOf = (lines: readonly Line[]) => lines.reduce((sum, line) => sum + line.quantity, 0n);
const unix = (day: string) => Date.parse(`${day}T00:00:00Z`) / 1_000;

const OPENAI_WORDS: Record<Class, string> = {
  input: 'input',
  cache_read: 'cached input',
  cache_write_5m: 'cache writes',
  cache_write_1h: '',
  output: 'output',
};

function openaiPage(one: PublishedCase, resultsOf: (one: PublishedCase, day: Day) => object[]): string {
  const data = one.days.map((day) => {
    const results = resultsOf(one, day).map((result) =>
      JSON.stringify(result).replaceAll(/"#([\d.]+)"/g, '$1'),
    );
    const start = unix(day.day);
    return `{"object":"bucket","start_time":${start},"end_time":${start + 86_400},"results":[${results.join(',')}]}`;
  });
  return `{"object":"page","data":[${data.join(',')}],"has_more":false,"next_page":null}`;
}

/** A number of any length: `#` marks a text that is written without its quotes. */
const number = (text: string) => `#${text}`;

/** Batch and standard calls share a line; long requests have separate lines. */
function openaiCosts(one: PublishedCase, day: Day): object[] {
  const lines = billedLines(one, day);
  return groupLines(lines, (line) => `${line.tokenClass} ${line.isLong}`).map((group) => {
    const [{ tokenClass, isLong }] = group as [Line];
    return {
      object: 'organization.costs.result',
      amount: { value: number(decimal(amountOf(group))), currency: 'usd' },
      line_item: `${one.model}, ${OPENAI_WORDS[tokenClass]}${isLong ? ', long context' : ''}`,
      project_id: 'proj_1',
      organization_id: null,
      quantity: number(String(quantityOf(group))),
      quantity_unit: 'tokens',
    };
  });
}

/** The usage report has the bill's counts: usage that is metered twice is so in both. */
function openaiUsage(one: PublishedCase, day: Day): object[] {
  return groupLines(billedLines(one, day), (line) => String(line.isBatch)).map((group) => {
    const isBatch = group[0]?.isBatch === true;
    const of = (tokenClass: Class) => quantityOf(group.filter((line) => line.tokenClass === tokenClass));
    const input = of('input') + of('cache_read') + of('cache_write_5m');
    return {
      object: 'organization.usage.completions.result',
      input_tokens: number(String(input)),
      input_cached_tokens: number(String(of('cache_read'))),
      input_cache_write_tokens: number(String(of('cache_write_5m'))),
      input_uncached_tokens: number(String(of('input'))),
      output_tokens: number(String(of('output'))),
      input_audio_tokens: 0,
      output_audio_tokens: 0,
      num_model_requests: callsOf(day, isBatch),
      project_id: 'proj_1',
      user_id: null,
      api_key_id: null,
      model: one.model,
      batch: isBatch,
      service_tier: 'default',
    };
  });
}

function callsOf(day: Day, isBatch: boolean): number {
  return day.calls.reduce((sum, calls) => sum + ((calls.isBatch ?? false) === isBatch ? calls.count : 0), 0);
}

const ANTHROPIC_TYPES: Record<Class, string> = {
  input: 'uncached_input_tokens',
  cache_read: 'cache_read_input_tokens',
  cache_write_5m: 'cache_creation.ephemeral_5m_input_tokens',
  cache_write_1h: 'cache_creation.ephemeral_1h_input_tokens',
  output: 'output_tokens',
};

function anthropicPage(one: PublishedCase, resultsOf: (one: PublishedCase, day: Day) => object[]): string {
  const data = one.days.map((day) => ({
    starting_at: `${day.day}T00:00:00Z`,
    ending_at: `${shiftDay(day.day, 1)}T00:00:00Z`,
    results: resultsOf(one, day),
  }));
  const text = JSON.stringify({ data, has_more: false, next_page: null });
  return text.replaceAll(/"#([\d.]+)"/g, '$1');
}

const placeOf = (line: Line) => ({
  service_tier: line.isBatch ? 'batch' : 'standard',
  context_window: line.isLong ? '200k-1M' : '0-200k',
  inference_geo: 'global',
  workspace_id: null,
});

/** Amounts are texts in cents; quantities are only in the usage report. */
function anthropicCosts(one: PublishedCase, day: Day): object[] {
  return billedLines(one, day).map((line) => ({
    amount: decimal(line.quantity * line.rate, 10),
    currency: 'USD',
    cost_type: 'tokens',
    description: `${one.model} Usage - ${line.tokenClass}`,
    model: one.model,
    token_type: ANTHROPIC_TYPES[line.tokenClass],
    ...placeOf(line),
  }));
}

function anthropicUsage(one: PublishedCase, day: Day): object[] {
  return groupLines(billedLines(one, day), (line) => `${line.isBatch} ${line.isLong}`).map((group) => {
    const of = (tokenClass: Class) =>
      number(String(quantityOf(group.filter((line) => line.tokenClass === tokenClass))));
    return {
      uncached_input_tokens: of('input'),
      cache_creation: {
        ephemeral_1h_input_tokens: of('cache_write_1h'),
        ephemeral_5m_input_tokens: of('cache_write_5m'),
      },
      cache_read_input_tokens: of('cache_read'),
      output_tokens: of('output'),
      server_tool_use: { web_search_requests: 0 },
      api_key_id: null,
      model: one.model,
      ...placeOf(group[0] as Line),
    };
  });
}

const CENT = 10_000_000_000n;
const toTheCent = (pico: bigint) => ((pico + CENT / 2n) / CENT) * CENT;

/** One row for each class and day; the tier marks batches. */
function plainCsv(one: PublishedCase): string {
  const rows = one.days.flatMap((day) =>
    groupLines(billedLines(one, day), (line) => `${line.tokenClass} ${line.isBatch}`).map((group) => {
      const [{ tokenClass, isBatch }] = group as [Line];
      const hasBatches = rightLines(day).some((line) => line.isBatch);
      const tier = hasBatches ? (isBatch ? 'batch' : 'standard') : '';
      const amount = one.toTheCent ? toTheCent(amountOf(group)) : amountOf(group);
      return [day.day, one.model, tokenClass, quantityOf(group), decimal(amount), tier].join(',');
    }),
  );
  return ['date,model,token_class,quantity,amount_usd,service_tier', ...rows, ''].join('\n');
}

const AWS_METERS: Record<Class, string> = {
  input: 'input-tokens',
  cache_read: 'cache-read-tokens',
  cache_write_5m: 'cache-write-tokens',
  cache_write_1h: 'cache-write-tokens-1h',
  output: 'output-tokens',
};

const usageTypeOf = (one: PublishedCase, { tokenClass, isBatch }: Line) =>
  `USE1-${one.model}-mantle-${AWS_METERS[tokenClass]}-${isBatch ? 'batch' : 'standard'}`;

/** Lines of usage, a thousand tokens to the unit, once the month is closed. */
function costAndUsageReport(one: PublishedCase): string {
  const header =
    'bill_invoice_id,bill_payer_account_id,line_item_line_item_type,line_item_usage_start_date,line_item_product_code,line_item_usage_type,line_item_usage_amount,pricing_unit,line_item_currency_code,line_item_unblended_cost';
  const lines = one.days.flatMap((day) =>
    billedLines(one, day).map((line) => {
      const amount = `${decimal(line.quantity, 3)},1K tokens,USD,${decimal(amountOf([line]))}`;
      return `INV-1,111122223333,Usage,${day.day}T00:00:00Z,AmazonBedrock,${usageTypeOf(one, line)},${amount}`;
    }),
  );
  return [header, ...lines, ''].join('\n');
}

/** The same bill as Cost Explorer's answer, by day and usage type. */
function costExplorerAnswer(one: PublishedCase): string {
  const ResultsByTime = one.days.map((day) => ({
    TimePeriod: { Start: day.day, End: shiftDay(day.day, 1) },
    Total: {},
    Groups: billedLines(one, day).map((line) => ({
      Keys: ['Usage', usageTypeOf(one, line)],
      Metrics: {
        UnblendedCost: { Amount: decimal(amountOf([line])), Unit: 'USD' },
        UsageQuantity: { Amount: decimal(line.quantity, 3), Unit: 'N/A' },
      },
    })),
    Estimated: false,
  }));
  const GroupDefinitions = ['RECORD_TYPE', 'USAGE_TYPE'].map((Key) => ({ Type: 'DIMENSION', Key }));
  return JSON.stringify({ GroupDefinitions, ResultsByTime });
}

const AZURE_WORDS: Record<Class, string> = {
  input: 'Inp',
  cache_read: 'Cd Inp',
  cache_write_5m: 'Cd Wr',
  cache_write_1h: '',
  output: 'Outp',
};

/** One line for each meter of a day; a meter counts millions. */
export function azureLines<T>(
  one: PublishedCase,
  lineOf: (day: string, meter: string, lines: Line[]) => T,
): T[] {
  const name = one.model.replace(/^gpt-/, '').replaceAll('-', ' ');
  return one.days.flatMap((day) =>
    groupLines(billedLines(one, day), (line) => `${line.tokenClass} ${line.isLong}`).map((group) => {
      const [{ tokenClass, isLong }] = group as [Line];
      const length = isLong ? 'LongCo' : 'ShortCo';
      return lineOf(day.day, `${name} ${length} ${AZURE_WORDS[tokenClass]} Std Gl 1M Tokens`, group);
    }),
  );
}

/** The months as they were invoiced. */
function costDetails(one: PublishedCase): string {
  const header =
    'invoiceId,SubscriptionId,ResourceId,date,chargeType,meterCategory,meterSubCategory,meterName,unitOfMeasure,quantity,billingCurrency,costInBillingCurrency';
  const lines = azureLines(one, (day, meter, group) =>
    [
      'G000000001',
      AZURE_SUBSCRIPTION,
      AZURE_RESOURCE,
      `${day.slice(5, 7)}/${day.slice(8)}/${day.slice(0, 4)}`,
      'Usage',
      'Foundry Models',
      'Azure OpenAI GPT5',
      meter,
      '1M',
      decimal(quantityOf(group), 6),
      'USD',
      decimal(amountOf(group)),
    ].join(','),
  );
  return [header, ...lines, ''].join('\n');
}

export const AZURE_SUBSCRIPTION = '11111111-0000-4000-8000-000000000001';
export const AZURE_RESOURCE = `/subscriptions/${AZURE_SUBSCRIPTION}/resourceGroups/models/providers/Microsoft.CognitiveServices/accounts/one`;

/** The same bill as Cost Management's answer. */
function queryAnswer(one: PublishedCase): string {
  const columns = ['Cost', 'UsageQuantity', 'UsageDate', 'Meter', 'ResourceId', 'Currency'];
  const rows = azureLines(one, (day, meter, group) => [
    number(decimal(amountOf(group))),
    number(decimal(quantityOf(group), 6)),
    number(day.replaceAll('-', '')),
    meter,
    AZURE_RESOURCE.toLowerCase(),
    'USD',
  ]);
  const text = JSON.stringify({
    properties: { nextLink: null, columns: columns.map((name) => ({ name })), rows },
  });
  return text.replaceAll(/"#([\d.]+)"/g, '$1');
}
