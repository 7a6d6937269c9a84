import type { BilledClass } from '../billedRow.js';

/** What a provider's label of a charge (a usage type, a meter, a SKU) says; the same for every grammar. */
export interface ParsedLabel {
  /** False: no rule knows the label. It is kept as `other` with its money, and shown. */
  recognised: boolean;
  /** The id under which the price list knows the model; null where the label names none. */
  model: string | null;
  tokenClass: BilledClass;
  serviceTier: string;
  /** Null where the label cannot say. */
  isBatch: boolean | null;
  longContext: boolean | null;
  /** The place whose price differs; null for the ordinary price. */
  region: string | null;
  /** Tokens of one billed unit, where the label says so itself. */
  unitTokens?: bigint;
  /** False for usage that no call can show: storage, hosting, capacity. */
  observable: boolean;
}

export const UNKNOWN_LABEL: ParsedLabel = {
  recognised: false,
  model: null,
  tokenClass: 'other',
  serviceTier: 'standard',
  isBatch: null,
  longContext: null,
  region: null,
  observable: true,
};

export const UNOBSERVABLE_LABEL: ParsedLabel = {
  ...UNKNOWN_LABEL,
  recognised: true,
  isBatch: false,
  observable: false,
};
