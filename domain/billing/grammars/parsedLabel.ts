import type { BilledClass } from '../billedRow.js';

/** The parsed label of a charge (a usage type, a meter or a SKU), in the same form for every grammar. */
export interface ParsedLabel {
  /** false: no grammar recognises the label. Its amount is kept and shown as `other`. */
  recognised: boolean;
  /** The id in the price list; null: the label names no model. */
  model: string | null;
  tokenClass: BilledClass;
  serviceTier: string;
  /** null: the label does not separate batch. */
  isBatch: boolean | null;
  longContext: boolean | null;
  /** The place with a separate price; null: the ordinary price. */
  region: string | null;
  /** Tokens of one billed unit, if the label states them. */
  unitTokens?: bigint;
  /** false: no call can show this usage (storage, hosting, capacity). */
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
