import type { BilledClass } from '../billedRow.js';
import { bedrockModelOf } from './bedrockModels.js';
import { type ParsedLabel, UNKNOWN_LABEL, UNOBSERVABLE_LABEL } from './parsedLabel.js';

/**
 * Usage types of Amazon Bedrock (Bedrock User Guide, "Understanding your Amazon Bedrock Cost and Usage Report data";
 * AWS Price List of AmazonBedrock and AmazonBedrockFoundationModels). Three forms:
 *   `USE1-Claude4.6Sonnet-cache-read-input-token-count-cross-region-global`: a thousand tokens
 *   `USE1-openai.gpt-oss-120b-mantle-input-tokens-standard`: a thousand tokens
 *   `USE1-MP:USE1_InputTokenCount_Global-Units`, `USE1-MillionBatchInputTokens`: a million tokens; the model is the
 *   name of the product, `Claude Sonnet 4.6 (Amazon Bedrock Edition)`
 */

const THOUSAND = 1_000n;
const MILLION = 1_000_000n;

/**
 * The words for meters in the forms that name their model; longer words come first, since they contain shorter
 * ones.
 */
const METERS: readonly [string, BilledClass][] = [
  ['cache-write-input-token-count-1h', 'cache_write_1h'],
  ['cache-write-1h-input-token-count', 'cache_write_1h'],
  ['cache-write-input-token-count', 'cache_write_5m'],
  ['cache-read-input-token-count', 'cache_read'],
  ['cache-write-tokens-1h', 'cache_write_1h'],
  ['cache-write-1h-tokens', 'cache_write_1h'],
  ['cache-write-tokens', 'cache_write_5m'],
  ['cache-read-tokens', 'cache_read'],
  ['output-token-count', 'output'],
  ['input-token-count', 'input'],
  ['output-tokens', 'output'],
  ['input-tokens', 'input'],
];

/** Region codes of AWS bills: `USE1`, `EU`, `APN1`, `UGW1`. */
const CODE = '(?:US|UG|EU|AP|CA|SA|ME|AF|IL|MX|CN)[A-Z]{0,2}\\d?';

const REGION = new RegExp(`^(${CODE})-(.*)$`);
const NAMED = new RegExp(
  `^(.+?)(-mantle)?-(${METERS.map(([words]) => words).join('|')})((?:-[a-z]+)*)$`,
  'i',
);

/**
 * The words that may follow the meter. A usage type has one price, so one without a word for long requests is not
 * for long requests.
 */
interface Manner {
  isBatch: boolean;
  isGlobal: boolean;
  serviceTier: string;
  longContext: boolean;
}

const TIERS: ReadonlySet<string> = new Set(['standard', 'flex', 'priority']);

/** Charges that no call can show, by words that no token meter contains. */
const WITHOUT_CALLS: readonly RegExp[] = [
  /\breserved\b|-reserved-|ReservedTier/i,
  /provisioned-?throughput|model-?units?\b|ModelUnitHours?/i,
  /-guardrail-|AutomatedReasoning/i,
  /knowledge-?base|searchunits|search_units/i,
  /customization|fine-?tuning|training|distillation|model-?storage|custom-?model-?(?:storage|import|unit)/i,
  /-flows?-|-agents?-|evaluation|data-?automation|prompt-?(?:router|optimization)/i,
];

/** Parses a usage type, with the name of its product if the usage type names no model. */
export function parseBedrockUsageType(usageType: string, productName = ''): ParsedLabel {
  const label = usageType.trim();
  const parsed = parseMarketplace(label, productName) ?? parseNamed(label);
  if (parsed) return parsed;
  return WITHOUT_CALLS.some((words) => words.test(label)) ? UNOBSERVABLE_LABEL : UNKNOWN_LABEL;
}

function parseNamed(label: string): ParsedLabel | undefined {
  const [, code = '', text = label] = REGION.exec(label) ?? [];
  const [, name = '', , words = '', behind = ''] = NAMED.exec(text) ?? [];
  if (words === '' || /(?:^|-)(?:image|audio|video|speech|reserved|guardrail)s?(?:-|$)/i.test(name))
    return undefined;
  const manner = mannerOf(behind.toLowerCase().split('-').filter(Boolean));
  const tokenClass = METERS.find(([meter]) => meter === words.toLowerCase())?.[1];
  if (!manner || !tokenClass) return undefined;
  const model = bedrockModelOf(name, code.toUpperCase(), manner.isGlobal);
  return labelOf(model ?? name, tokenClass, manner, THOUSAND);
}

const MARKETPLACE = new RegExp(`^(?:(${CODE})-)?(?:(MP):)?(?:(${CODE})_)?([A-Za-z0-9_]+?)(-Units)?$`);

function parseMarketplace(label: string, productName: string): ParsedLabel | undefined {
  const [, code, mark, inner, meter = '', units] = MARKETPLACE.exec(label) ?? [];
  if (meter === '' || (mark === undefined && units === undefined && !/^Million/.test(meter)))
    return undefined;
  const words = wordsOf(meter);
  const tokenClass = classOfWords(words);
  const manner = mannerOf(words.filter((word) => !METER_WORDS.has(word)));
  if (!tokenClass || !manner) return undefined;
  const name = productName.replace(/\(.*$/, '').trim();
  // Without a product name, or with the service's name, the class is known but the model is not.
  if (name === '' || /^(?:Amazon|AWS) ?Bedrock\b/i.test(name)) return undefined;
  const model = bedrockModelOf(name, (inner ?? code ?? '').toUpperCase(), manner.isGlobal);
  return labelOf(model ?? name, tokenClass, manner, MILLION);
}

/** Words of a meter that name the counted class. */
const METER_WORDS: ReadonlySet<string> = new Set([
  'million',
  'input',
  'output',
  'response',
  'cache',
  'read',
  'write',
  'token',
  'tokens',
  'count',
  '1h',
  '5m',
]);

/** `CacheWrite1hInputTokenCount_Global`, `cache_write_tokens_1h_global_standard` → lower-case words. */
function wordsOf(meter: string): string[] {
  return meter
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/([a-z])(\d)/gi, '$1_$2')
    .toLowerCase()
    .split('_')
    .filter(Boolean);
}

function classOfWords(words: readonly string[]): BilledClass | undefined {
  const has = (word: string) => words.includes(word);
  if (!has('token') && !has('tokens')) return undefined;
  if (has('cache')) {
    if (has('read') && !has('write')) return 'cache_read';
    if (has('write') && !has('read')) return has('1h') ? 'cache_write_1h' : 'cache_write_5m';
    return undefined;
  }
  if (has('output') || has('response')) return has('input') ? undefined : 'output';
  return has('input') ? 'input' : undefined;
}

/** Undefined: a word is unknown, so the whole label is unknown. */
function mannerOf(words: readonly string[]): Manner | undefined {
  const manner: Manner = { isBatch: false, isGlobal: false, serviceTier: 'standard', longContext: false };
  const left = new Set(words);
  const take = (...all: string[]) =>
    all.every((word) => left.has(word)) && all.every((word) => left.delete(word));
  if (take('cross', 'region', 'global') || take('global')) manner.isGlobal = true;
  if (take('cross', 'region', 'geo') || take('geo')) manner.isGlobal = false;
  if (take('batch')) manner.isBatch = true;
  if (take('latency', 'optimized')) manner.serviceTier = 'latency_optimized';
  if (take('custom', 'model')) manner.serviceTier = 'custom_model';
  if (take('long', 'context')) manner.longContext = true;
  for (const word of [...left]) {
    if (!TIERS.has(word)) continue;
    left.delete(word);
    if (word !== 'standard') manner.serviceTier = word;
  }
  return left.size === 0 ? manner : undefined;
}

function labelOf(model: string, tokenClass: BilledClass, manner: Manner, unitTokens: bigint): ParsedLabel {
  return {
    recognised: true,
    model,
    tokenClass,
    serviceTier: manner.serviceTier,
    isBatch: manner.isBatch,
    longContext: manner.longContext,
    region: null,
    unitTokens,
    observable: true,
  };
}

/**
 * Attributes of a Bedrock product beside its usage type (Price List attributes, Cost Explorer "product
 * attributes").
 */
export interface BedrockAttributes {
  /** `Claude Sonnet 5`. */
  model?: string | undefined;
  /** `Input tokens`, `Prompt cache read input tokens`. */
  inferenceType?: string | undefined;
  /** `On-demand Inference`, `Batch Inference`. */
  feature?: string | undefined;
}

/** Like `parseBedrockUsageType`, but attributes of the product count before the usage type, which is only a label. */
export function parseBedrockCharge(
  usageType: string,
  productName: string,
  attributes: BedrockAttributes,
): ParsedLabel {
  const label = parseBedrockUsageType(usageType, productName);
  const tokenClass = classOfWords(
    (attributes.inferenceType ?? '')
      .toLowerCase()
      .split(/[^a-z0-9]+/)
      .filter(Boolean),
  );
  const code = REGION.exec(usageType)?.[1] ?? '';
  const isGlobal = /global/i.test(usageType);
  const named = attributes.model === undefined ? null : bedrockModelOf(attributes.model, code, isGlobal);
  const isBatch = /^batch\b/i.test(attributes.feature ?? '') ? true : label.isBatch;
  if (label.recognised) {
    if (!label.observable) return label;
    return { ...label, model: named ?? label.model, tokenClass: tokenClass ?? label.tokenClass, isBatch };
  }
  if (named === null || tokenClass === undefined) return label;
  return {
    ...UNKNOWN_LABEL,
    recognised: true,
    model: named,
    tokenClass,
    isBatch: isBatch ?? /batch/i.test(usageType),
  };
}
