/**
 * What a generator makes: a company's calls as its clients told of them, its bills as its providers wrote them, and the
 * truth about both. Generators share no code and no constants with what is judged by them: this folder imports nothing of
 * the product (test/architecture.test.ts).
 */

export type GeneratedVisibility = 'V3' | 'V2' | 'V1' | 'V0';

/** A call as the company's own side told of it; what was lost on the way is not in the list. Tokens are whole. */
export interface ToldCall {
  provider: string;
  accountId: string | null;
  keyId: string;
  model: string;
  serviceTier: string | null;
  isBatch: boolean;
  status: 'ok' | 'error' | 'cancelled';
  /** Of an attempt that failed: what the provider answered, where the client tells it. */
  httpStatus: number | null;
  /** The client tells which model answered: `model` is that one, or an alias of it. */
  isNamedByAnswer: boolean;
  serviceName: string;
  /** Unix seconds at which it ended. */
  endSeconds: number;
  input: number;
  cacheRead: number;
  cacheWrite5m: number;
  cacheWrite1h: number;
  output: number;
  reasoning: number;
  /** The client cannot send cached tokens apart: they are inside `input`. */
  lacksCache: boolean;
  /** Where the call asked to be run, if it asked. */
  inferenceGeo: 'us' | null;
}

/** A key as the company registered it; keys that the bill knows besides were registered by nobody. */
export interface RegisteredKey {
  provider: string;
  accountId: string;
  keyId: string;
  /** Unix seconds; null = in use. */
  revokedAtSeconds: number | null;
}

/** One answer of a provider's billing API, or one file, as the provider writes it. */
export interface BillDocument {
  provider: string;
  accountId: string;
  /** Which feed the text is of. */
  feed: 'openai_costs' | 'openai_usage' | 'anthropic_costs' | 'anthropic_usage' | 'plain_csv';
  text: string;
}

/** A planted mistake, or something that looks like one, with its dollars. */
export interface Truth {
  id: string;
  /** A key of the violation taxonomy; `not_in_library` for a mistake that no library knows. */
  cause: string;
  /** Other keys of the taxonomy that name the same facts as rightly. */
  otherNames: readonly string[];
  /** What was planted, more finely than the cause: `sdk_outage`, `rate_times_1370`. */
  form: string;
  /** A mistake of the provider; else it is the company's own, or nobody's. */
  isViolation: boolean;
  provider: string;
  accountId: string;
  model: string;
  /**
   * By day of the bill: billed − what would have been right, pico-dollars; negative for an undercharge. What is no
   * violation has its days with zero. Where usage was billed as another model's, both models' lines are in it.
   */
  impactByDay: ReadonlyMap<string, bigint>;
  /** The visibilities at which what is delivered suffices to tell it, with the generator's own reason if not. */
  identifiableAt: ReadonlySet<GeneratedVisibility>;
  note: string;
}

export interface GeneratedWorld {
  seed: number;
  firstDay: string;
  /** The last day that is billed. */
  lastDay: string;
  /** When the bills were read; the days just before may still be restated. */
  readAtSeconds: number;
  /** Of the day before the first too, so that nothing begins with the bills. */
  calls: ToldCall[];
  /** The same bills as far as each visibility shows them. */
  bills: Record<GeneratedVisibility, BillDocument[]>;
  /** What was agreed with providers, as the body of POST /api/v1/pricing/contract-rates. */
  contracts: object[];
  /** Changes to the price list that the product is given, as entries of its file (data/README.md), where the set has wrong ones. */
  priceListChanges: object[];
  /** What the company registered, as entries of PUT /api/v1/provider-keys. */
  keys: RegisteredKey[];
  truths: Truth[];
  /** Billed for usage in all, pico-dollars: tokens, fees and surcharges; credits are no usage. */
  spendPico: bigint;
}
