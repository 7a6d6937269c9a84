/** One usage from what two tellings of a call counted. */
import { compare } from '../compare.js';
import { trustIn } from './clients.js';
import type { CallRecord, TokenUsage } from './event.js';

type Counted = Pick<CallRecord, 'usage' | 'origin'>;

/**
 * One usage from two: each class as the telling says that knows it; a telling that lacks a cached part counted it as
 * plain input, so the whole input stays and the part is taken out of it. Output as the nearer source counts it. Where
 * they cannot be counts of the same tokens, those of `one` hold.
 */
export function joinUsages(one: Counted, other: Counted): Counted {
  if (one.usage === null || other.usage === null) {
    return one.usage === null
      ? { usage: other.usage, origin: other.usage === null ? one.origin : other.origin }
      : pickCounted(one);
  }
  if (!countsTheSame(one.usage, other.usage)) return pickCounted(one);
  const base = compareSources(one, other) >= 0 ? one : other;
  const cacheRead = Math.max(one.usage.cacheRead, other.usage.cacheRead);
  const cacheCreation = Math.max(one.usage.cacheCreation, other.usage.cacheCreation);
  const inputAudio = Math.max(one.usage.inputAudio, other.usage.inputAudio);
  const parts = cacheRead + cacheCreation + inputAudio;
  const whole = Math.max(wholeInput(one.usage), wholeInput(other.usage), parts);
  const split = joinSplits(one.usage, other.usage, cacheCreation);
  const usage: TokenUsage = {
    input: whole - parts,
    cacheRead,
    cacheCreation,
    ...split,
    output: (base.usage as TokenUsage).output,
    inputAudio,
    outputAudio: (base.usage as TokenUsage).outputAudio,
    reasoning: Math.max(one.usage.reasoning, other.usage.reasoning),
    cached: Math.max(one.usage.cached, other.usage.cached),
  };
  // The output is that of the base, known or not.
  const isOpen = (name: string): boolean =>
    name === 'output' || [one, other].every(({ origin }) => origin.usageMissing.includes(name));
  const usageMissing = base.origin.usageMissing.filter(
    (name) => isOpen(name) && !(name === 'cache_write_1h' && split.cacheCreation1h !== null),
  );
  return { usage, origin: { ...base.origin, usageMissing } };
}

/** Tokens by which two counts of one output may differ: a client adds one in streams. */
const OUTPUT_SLACK = 1;

/**
 * Whether two usages can be counts of the same tokens: a client that lacks cached parts has another input, one that
 * left a stream early another output. Both differ only when one of the two sums up several calls.
 */
function countsTheSame(one: TokenUsage, other: TokenUsage): boolean {
  return (
    wholeInput(one) === wholeInput(other) || Math.abs(wholeOutput(one) - wholeOutput(other)) <= OUTPUT_SLACK
  );
}

function pickCounted({ usage, origin }: Counted): Counted {
  return { usage, origin };
}

/** Lifetimes of cache writes, from the telling that knows them of the whole write. */
function joinSplits(one: TokenUsage, other: TokenUsage, cacheCreation: number) {
  const longs = [one, other]
    .filter((usage) => usage.cacheCreation1h !== null && usage.cacheCreation === cacheCreation)
    .map((usage) => usage.cacheCreation1h as number);
  if (longs.length === 0) return { cacheCreation5m: null, cacheCreation1h: null };
  const long = Math.max(...longs);
  return { cacheCreation5m: cacheCreation - long, cacheCreation1h: long };
}

/** The source whose output counts: more trusted, then the larger count, then any fixed order. */
function compareSources(one: Counted, other: Counted): number {
  return (
    trustIn(one.origin.usageSource) - trustIn(other.origin.usageSource) ||
    wholeOutput(one.usage as TokenUsage) - wholeOutput(other.usage as TokenUsage) ||
    compare(one.origin.usageSource, other.origin.usageSource) ||
    compare(one.origin.usageRaw ?? '', other.origin.usageRaw ?? '')
  );
}

/** All input tokens of a usage, cached ones and audio included. */
export function wholeInput(usage: TokenUsage): number {
  return usage.input + usage.inputAudio + usage.cacheRead + usage.cacheCreation;
}

/** All output tokens of a usage, reasoning and audio included. */
export function wholeOutput(usage: TokenUsage): number {
  return usage.output + usage.outputAudio;
}
