import { randomUUID } from 'node:crypto';
import {
  leaseRateTokens,
  releaseRequestSlot,
  renewRequestSlot,
  type TokenGrant,
  type TokenRequest,
  takeRequestSlot,
} from '../../db/access/requestLimits.js';
import type { OrgDb } from '../../db/orgDb.js';
import { orgDbOf, type UseCaseDeps } from '../useCaseDeps.js';

/** Seconds after which a slot without renewal is free again, because its holder has died. */
const SLOT_SECONDS = 60;
const RENEW_MS = 20_000;

/** Releases a held slot, once. */
export type Release = () => void;

/**
 * The slots for exports of an organization, across all instances. When the table is unreachable each instance counts by
 * itself, so an organization never has more than `max` on any one instance.
 */
export class ExportSlots {
  readonly #here = new Map<string, number>();
  readonly #onStoreFailure: (error: unknown) => void;

  constructor(onStoreFailure: (error: unknown) => void) {
    this.#onStoreFailure = onStoreFailure;
  }

  /** Exports of the organization that run in this process. */
  countHere(orgId: string): number {
    return this.#here.get(orgId) ?? 0;
  }

  /** Takes a slot; undefined when `max` are held. */
  async take(orgDb: OrgDb, max: number): Promise<Release | undefined> {
    const { orgId } = orgDb;
    if (this.countHere(orgId) >= max) return undefined;
    this.#count(orgId, 1);
    const holder = randomUUID();
    const slot = { kind: 'export', holder, max, seconds: SLOT_SECONDS } as const;
    const isTaken = await takeRequestSlot(orgDb, slot).catch((error: unknown) => {
      this.#onStoreFailure(error);
      return true;
    });
    if (!isTaken) {
      this.#count(orgId, -1);
      return undefined;
    }
    // A failure is corrected by the next renewal, or by the slot's expiry.
    const renewal = setInterval(
      () => renewRequestSlot(orgDb, holder, SLOT_SECONDS).catch(() => undefined),
      RENEW_MS,
    );
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      clearInterval(renewal);
      this.#count(orgId, -1);
      releaseRequestSlot(orgDb, holder).catch(() => undefined);
    };
  }

  #count(orgId: string, change: number): void {
    const count = this.countHere(orgId) + change;
    if (count === 0) this.#here.delete(orgId);
    else this.#here.set(orgId, count);
  }
}

/** Takes tokens from a bucket that the instances share. */
export function leaseTokens(
  deps: UseCaseDeps,
  { orgId, ...bucket }: { orgId: string; subject: string; policy: string },
  ask: Pick<TokenRequest, 'rate' | 'cost' | 'wanted' | 'returned'>,
): Promise<TokenGrant> {
  return leaseRateTokens(orgDbOf(deps, orgId), { ...bucket, ...ask });
}
