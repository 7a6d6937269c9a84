import type { OrgDb } from '../../../../db/orgDb.js';
import type { Owned } from '../ownedThings.js';

/**
 * One call of a function of db/ with the ids of an owner, on a handle that may be the owner's or another's. What it
 * gives is all that it tells.
 */
export type Call = (db: OrgDb, of: Owned) => Promise<unknown>;

/**
 * A call, or one of a function that works as app_system, which row-level security lets through: there the predicate
 * alone holds, and this says why it must be so.
 */
export type TenancyCase = Call | { asSystem: string; run: Call };

/** Who asks, where a use case writes the audit log. */
export const anAuthor = (requestId: string) => ({ caller: { keyId: 'test' }, requestId });
