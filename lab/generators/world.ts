/**
 * The output of a generator: a company's calls as its clients reported them, its bills as its providers wrote
 * them, and the truth about both. Generators share no code and no constants with the code that they test: this
 * folder imports nothing of the product (test/architecture.test.ts).
 */

export type GeneratedVisibility = 'V3' | 'V2' | 'V1' | 'V0';

/** A call as the company's own client reported it; lost reports are not in the list. Tokens are whole. */
export interface ToldCall {
  provider: string;
  accountId: string | null;
  keyId: string;
  model: string;
  serviceTier: string | null;
  isBatch: boolean;
  status: 'ok' | 'error' | 'cancelled';
  /** For a failed attempt: the provider's status, if the client reports it. */
  httpStatus: number | null;
  /** The client reports the answering model: `model` is its id or an alias. */
  isNamedByAnswer: boolean;
  serviceName: string;
  /** Unix seconds of its end. */
  endSeconds: number;
  input: number;
  cacheRead: number;
  cacheWrite5m: number;
  cacheWrite1h: number;
  output: number;
  reasoning: number;
  /** The client cannot separate cached tokens; `input` includes them. */
  lacksCache: boolean;
  /** The requested place; null: the call requested none. */
  inferenceGeo: 'us' | null;
}

/** A key that the company registered; other keys on the bill are unregistered. */
export interface RegisteredKey {
  provider: string;
  accountId: string;
  keyId: string;
  /** Unix seconds; null: not revoked. */
  revokedAtSeconds: number | null;
}

/** One answer of a provider's billing API, or one file, as the provider writes it. */
export interface BillDocument {
  provider: string;
  accountId: string;
  /** The feed of the text. */
  feed:
    | 'openai_costs'
    | 'openai_usage'
    | 'anthropic_costs'
    | 'anthropic_usage'
    | 'aws_costs'
    | 'azure_costs'
    | 'plain_csv';
  text: string;
}

/** A planted mistake or benign look-alike, with its dollars. */
export interface Truth {
  id: string;
  /** A key of the violation taxonomy; `not_in_library` for a mistake outside the library. */
  cause: string;
  /** Other keys of the taxonomy that describe the same facts equally well. */
  otherNames: readonly string[];
  /** The planted form, more specific than the cause: `sdk_outage`, `rate_times_1370`. */
  form: string;
  /** true: a mistake of the provider; false: a mistake of the company, or none. */
  isViolation: boolean;
  provider: string;
  accountId: string;
  model: string;
  /**
   * By day of the bill: billed − right charge, pico-dollars; negative for an undercharge. If it is no violation,
   * its days have zero. If usage was billed as another model, it includes the lines of both models.
   */
  impactByDay: ReadonlyMap<string, bigint>;
  /** The visibilities whose documents suffice to identify it, with the generator's reason for the missing ones. */
  identifiableAt: ReadonlySet<GeneratedVisibility>;
  /**
   * The gate of the grade HIGH (docs/engine.md, "Gates") that the evidence cannot pass, as `coverage_or_sealed_scope`;
   * absent: its identifiable dollars can reach HIGH.
   */
  missingGate?: string;
  note: string;
}

export interface GeneratedWorld {
  seed: number;
  firstDay: string;
  /** The last billed day. */
  lastDay: string;
  /** Time of reading the bills; the days just before may still be restated. */
  readAtSeconds: number;
  /** Includes the day before the first one, so that calls do not begin with the bills. */
  calls: ToldCall[];
  /** The same bills at each visibility. */
  bills: Record<GeneratedVisibility, BillDocument[]>;
  /** Contracts with providers, as bodies of POST /api/v1/pricing/contract-rates. */
  contracts: object[];
  /** The company's own prices, as bodies of POST /api/v1/pricing/overrides; absent: none. */
  overrides?: object[];
  /** Changes to the price list of the product, as entries of its file (data/README.md), for sets with wrong prices. */
  priceListChanges: object[];
  /** The registered keys, as entries of PUT /api/v1/provider-keys. */
  keys: RegisteredKey[];
  truths: Truth[];
  /** Billed usage in total, pico-dollars: tokens, fees and surcharges; credits are not usage. */
  spendPico: bigint;
}
