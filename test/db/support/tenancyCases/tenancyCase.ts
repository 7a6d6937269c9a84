import type { OrgDb } from '../../../../db/orgDb.js';
import type { Owned } from '../ownedThings.js';

/**
 * Calls a function of db/ with the ids of an owner, on a handle that may be the owner's or another's. Its result is
 * everything that it reveals.
 */
export type Call = (db: OrgDb, of: Owned) => Promise<unknown>;

/**
 * A call, or a call of a function that works as app_system, which bypasses row-level security: there only the predicate
 * protects, and `asSystem` has the reason.
 */
export type TenancyCase = Call | { asSystem: string; run: Call };

/** The author, where a use case writes to the audit log. */
export const anAuthor = (requestId: string) => ({ caller: { keyId: 'test' }, requestId });
