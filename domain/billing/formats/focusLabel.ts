import type { Provider } from '../../providers.js';
import { type BilledClass, findBilledClass } from '../billedRow.js';
import { parseAzureMeter } from '../grammars/azureMeter.js';
import { parseBedrockUsageType } from '../grammars/bedrockUsageType.js';
import { parseGoogleSku } from '../grammars/googleSku.js';
import { type ParsedLabel, UNKNOWN_LABEL } from '../grammars/parsedLabel.js';
import { parseOpenaiLineItem } from '../openaiRows.js';
import { keepText } from '../pageRow.js';
import { isAzureModelCategory } from './azureCostDetails.js';
import { cellOf } from './cells.js';
import type { TableRecord } from './tableFormat.js';

/** A charge as its export names it: the words that stand for it, and what they say. */
export interface FocusLabel extends ParsedLabel {
  lineItem: string;
}

/** Where exports put the provider's own label: in a column of their own, or in the SKU's meter (FOCUS 1.1 and later). */
const LABEL_COLUMNS: Partial<Record<Provider, readonly string[]>> = {
  aws_bedrock: ['x_usagetype', 'skumeter', 'chargedescription'],
  azure_openai: ['x_skumetername', 'skumeter', 'chargedescription'],
  google: ['x_skudescription', 'chargedescription', 'skumeter'],
};
const ANY_LABEL = ['chargedescription', 'skuid', 'skumeter'] as const;

const GRAMMARS: Partial<Record<Provider, (label: string, record: TableRecord) => ParsedLabel>> = {
  openai: (label) => ({ ...parseOpenaiLineItem(label), region: null }),
  aws_bedrock: (label, record) => parseBedrockUsageType(label, record.get('servicename') ?? ''),
  azure_openai: (label, record) =>
    parseAzureMeter(label, cellOf(record, ['x_skumetersubcategory', 'servicename']) ?? ''),
  google: parseGoogleSku,
};

/** What a charge is for. Its own words in SkuPriceDetails go before any grammar. */
export function readFocusLabel(provider: Provider, record: TableRecord): FocusLabel {
  const lineItem = keepText(cellOf(record, LABEL_COLUMNS[provider] ?? ANY_LABEL) ?? '(no label)');
  const details = readDetails(record.get('skupricedetails'));
  const told = details.size > 0 ? toldBy(details, record) : undefined;
  const label = told ?? GRAMMARS[provider]?.(lineItem, record) ?? UNKNOWN_LABEL;
  return { ...label, lineItem };
}

/** SkuPriceDetails: a flat JSON object (FOCUS 1.1), its keys without the prefix x_ and in lower case. */
function readDetails(text: string | undefined): ReadonlyMap<string, string | boolean> {
  const details = new Map<string, string | boolean>();
  if (text === undefined) return details;
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed !== 'object' || parsed === null) return details;
    for (const [key, value] of Object.entries(parsed))
      if (typeof value === 'string' || typeof value === 'boolean')
        details.set(key.replace(/^x_/, '').toLowerCase(), value);
  } catch {
    // A cell that is no JSON says nothing; the label is left.
  }
  return details;
}

/** Words by which a meter tells its class, the narrower first. */
const METERS: readonly (readonly [RegExp, BilledClass])[] = [
  [/\bcach\w* (?:write|creation)\w*.*\b(?:1h|1 ?hour|60 ?min)/i, 'cache_write_1h'],
  [/\bcach\w* (?:write|creation)\w*\b/i, 'cache_write_5m'],
  [/\bcach\w*\b/i, 'cache_read'],
  [/\baudio\b.*\boutput\b|\boutput audio\b/i, 'output_audio'],
  [/\baudio\b.*\binput\b|\binput audio\b/i, 'input_audio'],
  [/\boutput tokens?\b/i, 'output'],
  [/\binput tokens?\b/i, 'input'],
];

/** Model and class as the details tell them; undefined where they name no model, and a grammar has to. */
function toldBy(
  details: ReadonlyMap<string, string | boolean>,
  record: TableRecord,
): ParsedLabel | undefined {
  const word = (name: string) => {
    const value = details.get(name);
    return typeof value === 'string' && value !== '' ? keepText(value) : undefined;
  };
  const named = word('tokenclass');
  const tokenClass =
    (named === undefined ? undefined : findBilledClass(named)) ??
    METERS.find(([pattern]) => pattern.test(record.get('skumeter') ?? ''))?.[1];
  const model = word('model') ?? word('modelid') ?? null;
  if (tokenClass === undefined || (model === null && named === undefined)) return undefined;
  const tier = word('tier')?.toLowerCase();
  const batch = details.get('batch') ?? (tier === 'batch' ? true : undefined);
  const band = word('contextband');
  return {
    recognised: model !== null && tokenClass !== 'other',
    model,
    tokenClass,
    serviceTier: tier === undefined || tier === 'batch' ? 'standard' : tier,
    isBatch: typeof batch === 'boolean' ? batch : null,
    longContext: band === undefined ? null : band === 'long',
    region: word('region') ?? null,
    observable: details.get('observable') !== false,
  };
}

/** ServiceProviderName from FOCUS 1.3 on, ProviderName before it; 1.3 has both. */
export const FOCUS_PROVIDER_COLUMNS = ['serviceprovidername', 'providername'] as const;

/**
 * How exports name who sells. FOCUS asks for a readable name and leaves the spelling to whoever writes the export, so a
 * name is compared without spaces, points and case.
 */
const SELLERS: Readonly<Record<Provider, RegExp>> = {
  openai: /^openai/,
  anthropic: /^anthropic/,
  google: /^google/,
  azure_openai: /^(?:microsoft|azure)/,
  aws_bedrock: /^(?:aws|amazon)/,
  mistral: /^mistral/,
  cohere: /^cohere/,
  xai: /^xai/,
};

/** Who sells much else: which of their services are those of language models. */
const SERVICES: Partial<Record<Provider, (record: TableRecord, service: string) => boolean>> = {
  aws_bedrock: (record, service) =>
    /bedrock/i.test(service) ||
    /bedrock/i.test(record.get('x_servicecode') ?? '') ||
    /^(?:[A-Z0-9]+-)?MP:/.test(record.get('x_usagetype') ?? ''),
  azure_openai: (record, service) =>
    isAzureModelCategory(service) ||
    isAzureModelCategory(record.get('x_skumetercategory') ?? '') ||
    /openai|\bfoundry\b/i.test(service),
  google: (_record, service) => /vertex ai|gemini|generative language/i.test(service),
};

/** Whether a charge is one of this provider's models: of its own services, or sold by it alone. */
export function isFocusChargeOf(provider: Provider, record: TableRecord): boolean {
  const seller = (cellOf(record, FOCUS_PROVIDER_COLUMNS) ?? '').toLowerCase().replace(/[^a-z0-9]/g, '');
  if (!SELLERS[provider].test(seller)) return false;
  const isOfService = SERVICES[provider];
  return isOfService?.(record, record.get('servicename') ?? '') ?? true;
}
