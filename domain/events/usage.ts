/**
 * Converts reported counts to disjoint classes. The input *includes* cached tokens, *excludes* them, or all counts
 * are *disjoint*.
 */

import type { Provider } from '../providers.js';
import type { MissingClass } from './clients.js';
import {
  type InputSemantics,
  TOKENS_MAX,
  type TokenUsage,
  USAGE_RAW_BYTES_MAX,
  type UsageFlag,
  type UsageOrigin,
} from './event.js';
import { ItemFault } from './itemFault.js';

/** Reported counts, each a whole number of tokens; absent: not reported. */
export interface ReportedUsage {
  input?: number;
  output?: number;
  cacheRead?: number;
  cacheWrite?: number;
  cacheWrite5m?: number;
  cacheWrite1h?: number;
  reasoning?: number;
  total?: number;
  inputAudio?: number;
  outputAudio?: number;
}

export interface NormalisedUsage {
  usage: TokenUsage;
  semantics: InputSemantics;
  flags: UsageFlag[];
}

/** Number of reported classes, by which the richer of two reports is found. */
export function countReported(reported: ReportedUsage): number {
  const hasSplit = reported.cacheWrite5m !== undefined || reported.cacheWrite1h !== undefined;
  return (
    Number(reported.input !== undefined) +
    Number(reported.output !== undefined) +
    Number(reported.cacheRead !== undefined) +
    Number(reported.cacheWrite !== undefined || hasSplit) +
    Number(hasSplit) +
    Number(reported.reasoning !== undefined)
  );
}

/** Whether the report can be priced: it needs more than a total. */
export function isReported(reported: ReportedUsage): boolean {
  return (
    reported.input !== undefined ||
    reported.output !== undefined ||
    reported.cacheRead !== undefined ||
    reported.cacheWrite !== undefined ||
    reported.cacheWrite5m !== undefined ||
    reported.cacheWrite1h !== undefined
  );
}

/**
 * Decides by arithmetic first (input below its cached parts, or a total that adds them: exclusive), else by
 * `expected`. `cached` stays 0.
 */
export function normaliseUsage(reported: ReportedUsage, expected: InputSemantics): NormalisedUsage {
  const flags: UsageFlag[] = [];
  const cache = cacheOf(reported, flags);
  const cached = cache.read + cache.write;
  const whole = expected === 'disjoint' ? bucketsOf(reported) : wholeOf(reported, cached);
  const semantics = expected === 'disjoint' ? expected : semanticsOf(whole.input, cached, whole, expected);
  const input = semantics === 'inclusive' ? whole.input - cached : whole.input;
  const audioIn = audioOf(reported.inputAudio ?? 0, input, semantics, 'audio_exceeds_input', flags);
  const output = outputOf(reported, whole, semantics, cached, flags);
  const audioOut = audioOf(
    reported.outputAudio ?? 0,
    output.tokens,
    semantics,
    'audio_exceeds_output',
    flags,
  );
  const usage: TokenUsage = {
    input: audioIn.text,
    cacheRead: cache.read,
    cacheCreation: cache.write,
    cacheCreation5m: cache.write5m,
    cacheCreation1h: cache.write1h,
    output: audioOut.text,
    inputAudio: audioIn.audio,
    outputAudio: audioOut.audio,
    reasoning: output.reasoning,
    cached: 0,
  };
  if (reported.total !== undefined && !isTotal(reported.total, reported, usage)) flags.push('total_mismatch');
  return { usage, semantics, flags };
}

interface Whole {
  input: number;
  output: number;
  total: number | undefined;
}

/** Input and output as reported; if one is absent, the rest of the total. */
function wholeOf(reported: ReportedUsage, cached: number): Whole {
  const { input, output, total } = reported;
  if (input === undefined && output !== undefined && total !== undefined && total >= output) {
    return { input: total - output, output, total };
  }
  if (output === undefined && input !== undefined && total !== undefined && total >= input) {
    return { input, output: total - input === cached && cached > 0 ? 0 : total - input, total };
  }
  return { input: input ?? (output === undefined ? cached : 0), output: output ?? 0, total };
}

function bucketsOf(reported: ReportedUsage): Whole {
  return { input: reported.input ?? 0, output: reported.output ?? 0, total: reported.total };
}

function semanticsOf(input: number, cached: number, whole: Whole, expected: InputSemantics): InputSemantics {
  if (input < cached) return 'exclusive';
  if (cached > 0 && whole.total !== undefined && whole.total === input + cached + whole.output)
    return 'exclusive';
  return expected;
}

function cacheOf(reported: ReportedUsage, flags: UsageFlag[]) {
  const read = reported.cacheRead ?? 0;
  const { cacheWrite: write, cacheWrite5m: short, cacheWrite1h: long } = reported;
  if (short === undefined && long === undefined) {
    // A cache write of zero tokens has a known split by lifetime: zeros.
    const none = write === undefined || write > 0 ? null : 0;
    return { read, write: write ?? 0, write5m: none, write1h: none };
  }
  if (write === undefined) {
    return { read, write: (short ?? 0) + (long ?? 0), write5m: short ?? 0, write1h: long ?? 0 };
  }
  const write5m = short ?? write - (long ?? 0);
  const write1h = long ?? write - write5m;
  if (write5m < 0 || write1h < 0 || write5m + write1h !== write) {
    flags.push('cache_split_mismatch');
    return { read, write, write5m: null, write1h: null };
  }
  return { read, write, write5m, write1h };
}

/**
 * Output including reasoning. Some providers count reasoning separately, which the total shows, or a reasoning
 * above the output.
 */
function outputOf(
  reported: ReportedUsage,
  whole: Whole,
  semantics: InputSemantics,
  cached: number,
  flags: UsageFlag[],
) {
  const reasoning = reported.reasoning ?? 0;
  if (semantics === 'disjoint') return { tokens: whole.output + reasoning, reasoning };
  const input = semantics === 'exclusive' ? whole.input + cached : whole.input;
  const isApart =
    reasoning > 0 && whole.total !== undefined && whole.total === input + whole.output + reasoning;
  if (isApart) return { tokens: whole.output + reasoning, reasoning };
  if (reasoning <= whole.output) return { tokens: whole.output, reasoning };
  flags.push('reasoning_exceeds_output');
  return { tokens: whole.output + reasoning, reasoning };
}

/** Subtracts audio from the tokens that include it; buckets are already separate. */
function audioOf(
  audio: number,
  tokens: number,
  semantics: InputSemantics,
  flag: UsageFlag,
  flags: UsageFlag[],
) {
  if (semantics === 'disjoint') return { audio, text: tokens };
  if (audio <= tokens) return { audio, text: tokens - audio };
  // The cached part of the audio is not reported, so only audio that can be uncached counts as audio.
  flags.push(flag);
  return { audio: tokens, text: 0 };
}

/** A total may add the counts as sent (Traceloop adds an exclusive input to the output) or all classes. */
function isTotal(total: number, reported: ReportedUsage, usage: TokenUsage): boolean {
  const all =
    usage.input + usage.inputAudio + usage.cacheRead + usage.cacheCreation + usage.output + usage.outputAudio;
  return total === all || total === (reported.input ?? 0) + (reported.output ?? 0);
}

/** Computes a call's usage and its origin, for every input format. */

/** Providers whose API reports the input without cached tokens: Anthropic, and Bedrock with Converse. */
const EXCLUSIVE_PROVIDERS: ReadonlySet<Provider> = new Set(['anthropic', 'aws_bedrock']);

export interface UsageReport {
  reported: ReportedUsage;
  /** The input semantics by the table of clients or by the object's own keys. */
  expected: InputSemantics;
  /** The convention to show on the event, if it is more exact than `expected`. */
  shownAs?: InputSemantics;
  source: string;
  /** Classes that the client cannot send. */
  cannotSend: readonly MissingClass[];
  /** The usage as received, as names and values, cut to 1 KB. */
  raw: { [name: string]: unknown } | null;
  /** A call without output, such as an embedding. */
  isInputOnly: boolean;
}

export interface Metered {
  usage: TokenUsage | null;
  origin: UsageOrigin;
  reportedClasses: number;
}

/** Usage and origin of a call of this provider and model. null: no count was reported. */
export function meterUsage(given: UsageReport, provider: Provider, model: string): Metered {
  const usageRaw = given.raw === null ? null : rawText(given.raw);
  if (!isReported(given.reported)) {
    const origin = {
      usageSource: given.source,
      inputSemantics: given.shownAs ?? given.expected,
      usageMissing: unmeteredClasses(given),
      usageRaw,
      usageFlags: [],
    };
    return { usage: null, origin, reportedClasses: 0 };
  }
  const { usage, semantics, flags } = normaliseUsage(given.reported, given.expected);
  checkSums(usage);
  usage.cached = isExclusiveApi(provider, model) ? 0 : usage.cacheRead;
  const origin = {
    usageSource: given.source,
    inputSemantics: given.shownAs ?? semantics,
    usageMissing: missingOf(given, usage),
    usageRaw,
    usageFlags: flags,
  };
  return { usage, origin, reportedClasses: countReported(given.reported) };
}

/** Counts that are each in range may add up to more than the maximum. @throws ItemFault invalid_number. */
function checkSums({
  input,
  inputAudio,
  output,
  outputAudio,
  cacheRead,
  cacheCreation,
  reasoning,
}: TokenUsage): void {
  checkSum('input', input + inputAudio);
  checkSum('output', output + outputAudio);
  checkSum('cache read', cacheRead);
  checkSum('cache write', cacheCreation);
  checkSum('reasoning', reasoning);
}

function checkSum(name: string, tokens: number): void {
  if (tokens > TOKENS_MAX)
    throw new ItemFault('invalid_number', `the ${name} tokens add up to more than ${TOKENS_MAX}`);
}

/** Claude's API reports the input without cached tokens at every seller. */
function isExclusiveApi(provider: Provider, model: string): boolean {
  return EXCLUSIVE_PROVIDERS.has(provider) || model.includes('claude');
}

/** For a call without any count: all classes, so that its zeros are not read as counts. */
function unmeteredClasses({ cannotSend, isInputOnly }: UsageReport): MissingClass[] {
  return isInputOnly ? ['input'] : [...new Set<MissingClass>(['input', 'output', ...cannotSend])];
}

/** Classes that the client cannot send and did not send, and those that this call leaves unknown. */
function missingOf({ reported, cannotSend, isInputOnly }: UsageReport, usage: TokenUsage): MissingClass[] {
  const isWriteTold =
    reported.cacheWrite !== undefined ||
    reported.cacheWrite5m !== undefined ||
    reported.cacheWrite1h !== undefined;
  const missing = cannotSend.filter((name) => {
    if (isInputOnly) return false;
    if (name === 'cache_read') return reported.cacheRead === undefined;
    if (name === 'cache_write_5m' || name === 'cache_write_1h') return !isWriteTold;
    return name !== 'reasoning' || reported.reasoning === undefined;
  });
  const isTotalReported = reported.total !== undefined;
  if (reported.input === undefined && !isTotalReported && !missing.includes('input')) missing.push('input');
  if (reported.output === undefined && !isTotalReported && !isInputOnly && !missing.includes('output'))
    missing.push('output');
  // A write with an unknown lifetime may have the 1-hour rate, so that class is missing.
  if (usage.cacheCreation > 0 && usage.cacheCreation1h === null && !missing.includes('cache_write_1h')) {
    missing.push('cache_write_1h');
  }
  return missing;
}

/** JSON text of at most 1 KB. Entries that do not fit are left out, and `_truncated` marks it. */
function rawText(raw: { [name: string]: unknown }): string {
  // A replacer makes JSON.stringify several times slower.
  const isExact = Object.values(raw).every(
    (value) => typeof value === 'string' || Number.isSafeInteger(value),
  );
  const text = isExact ? JSON.stringify(raw) : JSON.stringify(raw, exact);
  if (text.length <= USAGE_RAW_BYTES_MAX) return text;
  const mark = '"_truncated":true}';
  let kept = '{';
  for (const [name, value] of Object.entries(raw)) {
    const entry = `${JSON.stringify(name)}:${JSON.stringify(value, exact) ?? 'null'},`;
    if (kept.length + entry.length + mark.length <= USAGE_RAW_BYTES_MAX) kept += entry;
  }
  return kept + mark;
}

/** Writes numbers that JSON cannot represent as text. */
function exact(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;
}
