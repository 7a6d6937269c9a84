import { DomainError } from '../../domain/errors.js';
import type { OrgDb } from '../orgDb.js';
import { lockEventsById } from './events.js';
import type { StoredEvent } from './storedEvents.js';
import { type Chains, endOf, shortenChains, walkChains } from './supersededChains.js';

/** Each round finds that another transaction has just superseded what the round before found. */
const ROUNDS_MAX = 64;
const RETRY_AFTER_SECONDS = 1;

/**
 * For each of these events the one that counts for its call, locked: of two reports that meet at the same time the
 * second sees what the first made of the call. Without those of which none is stored any more. What was walked over
 * names the end of its chain from then on.
 */
export async function lockLiveEvents(
  orgDb: OrgDb,
  ids: readonly string[],
): Promise<Map<string, StoredEvent>> {
  const live = new Map<string, StoredEvent>();
  const walked: Chains = new Map();
  // By event asked for: where to look next. Mostly it counts itself.
  let open = new Map(ids.map((id) => [id, id]));
  for (let round = 0; open.size > 0; round += 1) {
    if (round === ROUNDS_MAX) throw tooManyAtOnce();
    const locked = await lockEventsById(orgDb, [...new Set(open.values())]);
    const byId = new Map(locked.map((event) => [event.id, event]));
    const superseded = new Map<string, string>();
    for (const [id, at] of open) {
      const event = byId.get(at);
      if (event === undefined) continue;
      walked.set(at, event.supersededBy);
      if (event.supersededBy === null) live.set(id, event);
      else superseded.set(id, event.supersededBy);
    }
    open = new Map();
    if (superseded.size === 0) break;
    const chains = await walkChains(orgDb, [...new Set(superseded.values())]);
    for (const [id, next] of chains) walked.set(id, next);
    for (const [id, at] of superseded) {
      const end = endOf(chains, at);
      if (end !== undefined) open.set(id, end);
    }
  }
  await shortenChains(orgDb, walked);
  return live;
}

function tooManyAtOnce(): DomainError {
  return new DomainError(
    'service_unavailable',
    'too many requests report the same call at once; send these again',
    { retryAfterSeconds: RETRY_AFTER_SECONDS },
  );
}
