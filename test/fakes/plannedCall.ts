/**
 * The plan of one call to a provider: the fake answers by it, the client program makes it, and the test compares with
 * it. A call is recognised by its id, a word in its prompt.
 */

/** Tokens as the provider counts and bills them: disjoint, except that `reasoning` is part of `output`. */
export interface TrueUsage {
  uncachedInput: number;
  cacheRead: number;
  /** Cache write of the ordinary lifetime: 5 minutes at Anthropic, the only one at OpenAI. */
  cacheWrite5m: number;
  /** Cache write of one hour; Anthropic only. */
  cacheWrite1h: number;
  output: number;
  reasoning: number;
}

/** The provider's interface that a call uses. */
export type CallApi = 'chat' | 'responses' | 'embeddings' | 'messages';

/**
 * The fate of a call. `retry429` and `retry500`: the first attempt fails so, the second succeeds. `fail400` and
 * `fail429`: every attempt fails. `abort`: the client leaves a stream after its first words.
 */
export type CallFate = 'ok' | 'retry429' | 'retry500' | 'fail400' | 'fail429' | 'abort';

export interface PlannedCall {
  /** Unique in a plan, `call-` and digits; the fakes find the call by this word in the request. */
  id: string;
  api: CallApi;
  /** The model as the client requests it, often an alias. */
  model: string;
  /** The model in the provider's answer, often a dated snapshot. */
  responseModel: string;
  isStream: boolean;
  /** Made by the client's convenience for streams (`messages.stream()`), not by `create({stream: true})`. */
  isStreamHelper: boolean;
  /** False for an OpenAI chat stream that does not ask for its usage, so that no client can know it. */
  asksForUsage: boolean;
  fate: CallFate;
  /** Calls of one batch are started at once; batches follow one another. */
  batch: number;
  usage: TrueUsage;
}

/** All input tokens of a call: fresh, read from a cache and written to one. */
export function wholeInput(usage: TrueUsage): number {
  return usage.uncachedInput + usage.cacheRead + usage.cacheWrite5m + usage.cacheWrite1h;
}

/** True for a call that ends with an answer and its usage. */
export function isAnswered(call: PlannedCall): boolean {
  return call.fate === 'ok' || call.fate === 'retry429' || call.fate === 'retry500';
}
