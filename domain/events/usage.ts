/**
 * From the counts that a client told to disjoint token classes. Every client says either *inclusive* (the input
 * contains what was cached), *exclusive* (it does not) or *disjoint* (every count is a bucket of its own).
 */
import type { InputSemantics, TokenUsage, UsageFlag } from './event.js';

/** Counts as told, each a whole number of tokens; what was not told is absent. */
export interface ToldUsage {
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

/** How many classes were told: the richer of two tellings is the one that told more. */
export function countTold(told: ToldUsage): number {
  const hasSplit = told.cacheWrite5m !== undefined || told.cacheWrite1h !== undefined;
  return (
    Number(told.input !== undefined) +
    Number(told.output !== undefined) +
    Number(told.cacheRead !== undefined) +
    Number(told.cacheWrite !== undefined || hasSplit) +
    Number(hasSplit) +
    Number(told.reasoning !== undefined)
  );
}

/** Whether anything was told that can be metered: a total alone cannot be priced. */
export function isTold(told: ToldUsage): boolean {
  return (
    told.input !== undefined ||
    told.output !== undefined ||
    told.cacheRead !== undefined ||
    told.cacheWrite !== undefined ||
    told.cacheWrite5m !== undefined ||
    told.cacheWrite1h !== undefined
  );
}

/**
 * Disjoint classes of what was told. Which semantics hold: (1) what arithmetic proves: an input smaller than its
 * cached parts, or a total that is the sum with them, is exclusive; (2) else `expected`, which the caller took from
 * the table of clients or from the convention. `cached` is left 0 here: it depends on the provider.
 */
export function normaliseUsage(told: ToldUsage, expected: InputSemantics): NormalisedUsage {
  const flags: UsageFlag[] = [];
  const cache = cacheOf(told, flags);
  const cached = cache.read + cache.write;
  const whole = expected === 'disjoint' ? bucketsOf(told) : wholeOf(told, cached);
  const semantics = expected === 'disjoint' ? expected : semanticsOf(whole.input, cached, whole, expected);
  const input = semantics === 'inclusive' ? whole.input - cached : whole.input;
  const audioIn = audioOf(told.inputAudio ?? 0, input, semantics, 'audio_exceeds_input', flags);
  const output = outputOf(told, whole, semantics, cached, flags);
  const audioOut = audioOf(told.outputAudio ?? 0, output.tokens, semantics, 'audio_exceeds_output', flags);
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
  if (told.total !== undefined && !isTotal(told.total, told, usage)) flags.push('total_mismatch');
  return { usage, semantics, flags };
}

interface Whole {
  input: number;
  output: number;
  total: number | undefined;
}

/** Input and output as told; where one of them is absent, what the total leaves for it. */
function wholeOf(told: ToldUsage, cached: number): Whole {
  const { input, output, total } = told;
  if (input === undefined && output !== undefined && total !== undefined && total >= output) {
    return { input: total - output, output, total };
  }
  if (output === undefined && input !== undefined && total !== undefined && total >= input) {
    return { input, output: total - input === cached && cached > 0 ? 0 : total - input, total };
  }
  return { input: input ?? (output === undefined ? cached : 0), output: output ?? 0, total };
}

function bucketsOf(told: ToldUsage): Whole {
  return { input: told.input ?? 0, output: told.output ?? 0, total: told.total };
}

function semanticsOf(input: number, cached: number, whole: Whole, expected: InputSemantics): InputSemantics {
  if (input < cached) return 'exclusive';
  if (cached > 0 && whole.total !== undefined && whole.total === input + cached + whole.output)
    return 'exclusive';
  return expected;
}

function cacheOf(told: ToldUsage, flags: UsageFlag[]) {
  const read = told.cacheRead ?? 0;
  const { cacheWrite: write, cacheWrite5m: short, cacheWrite1h: long } = told;
  if (short === undefined && long === undefined) {
    // No write at all has no lifetimes to tell.
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

/** Output with its reasoning inside. Some providers count reasoning apart: then the total says so, or it is larger. */
function outputOf(
  told: ToldUsage,
  whole: Whole,
  semantics: InputSemantics,
  cached: number,
  flags: UsageFlag[],
) {
  const reasoning = told.reasoning ?? 0;
  if (semantics === 'disjoint') return { tokens: whole.output + reasoning, reasoning };
  const input = semantics === 'exclusive' ? whole.input + cached : whole.input;
  const isApart =
    reasoning > 0 && whole.total !== undefined && whole.total === input + whole.output + reasoning;
  if (isApart) return { tokens: whole.output + reasoning, reasoning };
  if (reasoning <= whole.output) return { tokens: whole.output, reasoning };
  flags.push('reasoning_exceeds_output');
  return { tokens: whole.output + reasoning, reasoning };
}

/** Takes audio out of the tokens that it is part of; buckets are apart already. */
function audioOf(
  audio: number,
  tokens: number,
  semantics: InputSemantics,
  flag: UsageFlag,
  flags: UsageFlag[],
) {
  if (semantics === 'disjoint') return { audio, text: tokens };
  if (audio <= tokens) return { audio, text: tokens - audio };
  // How much of the audio was cached is not told, so only what can be uncached audio is counted as such.
  flags.push(flag);
  return { audio: tokens, text: 0 };
}

/** A total may count what was sent (Traceloop adds an exclusive input to the output) or all classes. */
function isTotal(total: number, told: ToldUsage, usage: TokenUsage): boolean {
  const all =
    usage.input + usage.inputAudio + usage.cacheRead + usage.cacheCreation + usage.output + usage.outputAudio;
  return total === all || total === (told.input ?? 0) + (told.output ?? 0);
}
