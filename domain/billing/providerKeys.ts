import type { TokenClass } from '../events/event.js';
import type { Pico } from '../money.js';
import type { Provider } from '../providers.js';

export const PROVIDER_KEY_STATUSES = ['active', 'revoked'] as const;
export type ProviderKeyStatus = (typeof PROVIDER_KEY_STATUSES)[number];

/** One of the organization's keys at a provider, by the provider's id of it; never the key itself. */
export interface ProviderKey {
  readonly provider: Provider;
  readonly providerKeyId: string;
  /** The account that is billed for the key; null: unknown. */
  readonly providerAccountId: string | null;
  readonly name: string;
  readonly project: string | null;
  readonly teamId: string | null;
  readonly status: ProviderKeyStatus;
  readonly activeFromMicros: bigint | null;
  /** null: the key is not revoked. */
  readonly revokedAtMicros: bigint | null;
}

/** Reasons to report a billed key: it is not registered, or it was billed after its revocation. */
export const SUSPECT_KEY_REASONS = ['unknown', 'billed_after_revocation'] as const;
export type SuspectKeyReason = (typeof SUSPECT_KEY_REASONS)[number];

export interface SuspectKey {
  readonly provider: Provider;
  readonly providerAccountId: string;
  readonly providerKeyId: string;
  readonly reason: SuspectKeyReason;
  /** UTC days, inclusive. */
  readonly firstDay: string;
  readonly lastDay: string;
  /** null: only a usage report names the key, so its cost is unknown. */
  readonly billedPico: Pico | null;
  /** The key's usage by day, if the bill or usage report names the model; absent: only the sums are known. */
  readonly uses?: readonly KeyUse[];
}

export interface KeyUse {
  readonly day: string;
  readonly model: string;
  /** null: only a usage report contains the usage, so its cost is unknown. */
  readonly billedPico: Pico | null;
  /** 1e-12 tokens by class; an unreported class is absent. */
  readonly quantities: Readonly<Partial<Record<TokenClass, bigint>>>;
}
