import type { TokenClass } from '../events/event.js';
import type { Pico } from '../money.js';
import type { Provider } from '../providers.js';

export const PROVIDER_KEY_STATUSES = ['active', 'revoked'] as const;
export type ProviderKeyStatus = (typeof PROVIDER_KEY_STATUSES)[number];

/** One of the organization's keys at a provider, by the provider's own id of it; never the key itself. */
export interface ProviderKey {
  readonly provider: Provider;
  readonly providerKeyId: string;
  /** The account that the provider bills for its use; null where nobody said. */
  readonly providerAccountId: string | null;
  readonly name: string;
  readonly project: string | null;
  readonly teamId: string | null;
  readonly status: ProviderKeyStatus;
  readonly activeFromMicros: bigint | null;
  /** Set exactly when the key is revoked. */
  readonly revokedAtMicros: bigint | null;
}

/** Why a billed key is shown: nobody knows it, or it was billed when it should have been out of use. */
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
  /** Null where only a usage report names the key: what it cost is then not said. */
  readonly billedPico: Pico | null;
  /** Its use day by day, where the bill or the usage report tells the model; absent: only the sums are known. */
  readonly uses?: readonly KeyUse[];
}

export interface KeyUse {
  readonly day: string;
  readonly model: string;
  /** Null where only a usage report tells the use. */
  readonly billedPico: Pico | null;
  /** 1e-12 tokens by class; a class that is not told is absent. */
  readonly quantities: Readonly<Partial<Record<TokenClass, bigint>>>;
}
