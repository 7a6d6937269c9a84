/**
 * The usage of a call with its origin: what every way in makes of the counts that it was told.
 */
import type { Provider } from '../providers.js';
import type { MissingClass } from './clients.js';
import {
  type InputSemantics,
  TOKENS_MAX,
  type TokenUsage,
  USAGE_RAW_BYTES_MAX,
  type UsageOrigin,
} from './event.js';
import { ItemFault } from './itemFault.js';
import { countTold, isTold, normaliseUsage, type ToldUsage } from './usage.js';

/** Providers whose API counts the input without the cached tokens: Anthropic and Bedrock's Converse. */
const EXCLUSIVE_PROVIDERS: ReadonlySet<Provider> = new Set(['anthropic', 'aws_bedrock']);

export interface Told {
  told: ToldUsage;
  /** What the table of clients, or the object's own keys, say of the input. */
  expected: InputSemantics;
  /** How it is called on the event, where it is known better than `expected` says. */
  shownAs?: InputSemantics;
  source: string;
  /** Classes that the client cannot send. */
  cannotSend: readonly MissingClass[];
  /** The usage as received, as names and values; cut to what fits into 1 KB. */
  raw: { [name: string]: unknown } | null;
  /** A call without output, such as an embedding. */
  isInputOnly: boolean;
}

export interface Metered {
  usage: TokenUsage | null;
  origin: UsageOrigin;
  toldClasses: number;
}

/** Usage and origin of a call of this provider and model. Usage is null when no count was told. */
export function meterUsage(given: Told, provider: Provider, model: string): Metered {
  const usageRaw = given.raw === null ? null : rawText(given.raw);
  if (!isTold(given.told)) {
    const origin = {
      usageSource: given.source,
      inputSemantics: given.shownAs ?? given.expected,
      usageMissing: unmeteredClasses(given),
      usageRaw,
      usageFlags: [],
    };
    return { usage: null, origin, toldClasses: 0 };
  }
  const { usage, semantics, flags } = normaliseUsage(given.told, given.expected);
  checkSums(usage);
  usage.cached = isExclusiveApi(provider, model) ? 0 : usage.cacheRead;
  const origin = {
    usageSource: given.source,
    inputSemantics: given.shownAs ?? semantics,
    usageMissing: missingOf(given, usage),
    usageRaw,
    usageFlags: flags,
  };
  return { usage, origin, toldClasses: countTold(given.told) };
}

/**
 * Counts that are each in range may add up to more than is stored.
 * @throws ItemFault invalid_number.
 */
function checkSums({
  input,
  inputAudio,
  output,
  outputAudio,
  cacheRead,
  cacheCreation,
  reasoning,
}: TokenUsage): void {
  const sums = {
    input: input + inputAudio,
    output: output + outputAudio,
    'cache read': cacheRead,
    'cache write': cacheCreation,
    reasoning,
  };
  for (const [name, tokens] of Object.entries(sums))
    if (tokens > TOKENS_MAX)
      throw new ItemFault('invalid_number', `the ${name} tokens add up to more than ${TOKENS_MAX}`);
}

/** Claude counts its input without the cached tokens wherever it is sold. */
function isExclusiveApi(provider: Provider, model: string): boolean {
  return EXCLUSIVE_PROVIDERS.has(provider) || model.includes('claude');
}

/** Of a call without any count: everything, so that its zeros are not read as counts. */
function unmeteredClasses({ cannotSend, isInputOnly }: Told): MissingClass[] {
  return isInputOnly ? ['input'] : [...new Set<MissingClass>(['input', 'output', ...cannotSend])];
}

/** Classes that the client cannot send and did not, and those that this call leaves open. */
function missingOf({ told, cannotSend, isInputOnly }: Told, usage: TokenUsage): MissingClass[] {
  const isWriteTold =
    told.cacheWrite !== undefined || told.cacheWrite5m !== undefined || told.cacheWrite1h !== undefined;
  const missing = cannotSend.filter((name) => {
    if (isInputOnly) return false;
    if (name === 'cache_read') return told.cacheRead === undefined;
    if (name === 'cache_write_5m' || name === 'cache_write_1h') return !isWriteTold;
    return name !== 'reasoning' || told.reasoning === undefined;
  });
  const isTotalTold = told.total !== undefined;
  if (told.input === undefined && !isTotalTold && !missing.includes('input')) missing.push('input');
  if (told.output === undefined && !isTotalTold && !isInputOnly && !missing.includes('output'))
    missing.push('output');
  // A write of unknown lifetime: the 1-hour rate is another one.
  if (usage.cacheCreation > 0 && usage.cacheCreation1h === null && !missing.includes('cache_write_1h')) {
    missing.push('cache_write_1h');
  }
  return missing;
}

/** JSON text of at most 1 KB: entries that do not fit any more are left out and `_truncated` says so. */
function rawText(raw: { [name: string]: unknown }): string {
  const text = JSON.stringify(raw, exact);
  if (text.length <= USAGE_RAW_BYTES_MAX) return text;
  const mark = '"_truncated":true}';
  let kept = '{';
  for (const [name, value] of Object.entries(raw)) {
    const entry = `${JSON.stringify(name)}:${JSON.stringify(value, exact) ?? 'null'},`;
    if (kept.length + entry.length + mark.length <= USAGE_RAW_BYTES_MAX) kept += entry;
  }
  return kept + mark;
}

/** Numbers that JSON has no word for, as text. */
function exact(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;
}
