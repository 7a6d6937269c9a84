import type { SpanLink } from '../../domain/events/event.js';
import { SpanTree } from '../../domain/events/spanTree.js';
import type { Steps } from '../../domain/steps.js';
import { UnionFind } from '../../domain/unionFind.js';
import {
  type CallIdentity,
  type HeldIdentity,
  identitiesOf,
  identityKey,
  type PointedIdentity,
} from './callIdentities.js';
import { type AddedReport, type LiveReport, type MergedCall, mergeReports } from './mergeReports.js';

/** A call, and the locked identities under which it was reported. */
export interface GroupedCall extends MergedCall {
  identities: readonly HeldIdentity[];
}

interface Group {
  live: LiveReport[];
  added: AddedReport[];
  identities: HeldIdentity[];
}

/** Reports by call: those that share an identity, directly or through others, are of one call. */
export class ReportGroups {
  readonly #sets = new UnionFind<string>();
  readonly #identities: readonly HeldIdentity[];
  readonly #added: AddedReport[] = [];
  readonly #links = new Map<string, SpanLink>();
  readonly #liveIds = new Set<string>();

  /** @param live by the event that an identity names: the one that counts for its call. */
  constructor(identities: readonly HeldIdentity[], live: ReadonlyMap<string, { id: string }>) {
    this.#identities = identities;
    for (const { identity, holderId, link } of identities) {
      const holder = live.get(holderId);
      if (holder === undefined) continue;
      this.#liveIds.add(holder.id);
      this.#sets.join(identityKey(identity), holder.id);
      if (holder.id === holderId && link !== null) this.#links.set(holder.id, link);
    }
  }

  addLive(eventId: string): void {
    this.#liveIds.add(eventId);
  }

  addReport(report: AddedReport): void {
    this.#added.push(report);
  }

  joinIdentities(eventId: string, identities: readonly CallIdentity[]): void {
    for (const identity of identities) this.#sets.join(eventId, identityKey(identity));
  }

  joinEvents(eventId: string, otherId: string): void {
    this.#sets.join(eventId, otherId);
  }

  /** The calls, each with the report that counts for it from now on. */
  *merge(reportOf: (eventId: string, link: SpanLink | null) => LiveReport | undefined): Steps<GroupedCall[]> {
    const groups = new Map<string, Group>();
    const groupOf = (name: string): Group => {
      const root = this.#sets.find(name);
      const group = groups.get(root) ?? { live: [], added: [], identities: [] };
      groups.set(root, group);
      return group;
    };
    for (const id of this.#liveIds) {
      const report = reportOf(id, this.#links.get(id) ?? null);
      if (report !== undefined) groupOf(id).live.push(report);
    }
    for (const report of this.#added) groupOf(report.event.id).added.push(report);
    for (const held of this.#identities) groupOf(identityKey(held.identity)).identities.push(held);
    const calls: GroupedCall[] = [];
    for (const { live, added, identities } of groups.values()) {
      // All that was stored of the call is gone for its age.
      if (live.length === 0) continue;
      const tree = new SpanTree(live.flatMap(({ call }) => call.trace ?? []));
      calls.push({ ...mergeReports(live, added, tree), identities });
      yield;
    }
    return calls;
  }
}

/** Identities that do not point at the event that counts: those that were locked, and response ids stored just now. */
export function identitiesToPoint({ kept, superseded, identities }: GroupedCall): PointedIdentity[] {
  const held = new Set(identities.map(({ identity }) => identityKey(identity)));
  const own = superseded
    .filter(({ stored }) => stored === undefined)
    .flatMap(({ call }) => identitiesOf(call))
    .filter((identity) => 'responseId' in identity && !held.has(identityKey(identity)));
  const moved = identities.filter(({ holderId, isOld }) => holderId !== kept.id || isOld);
  return [...own, ...moved.map(({ identity }) => identity)].map((identity) => ({
    identity,
    liveId: kept.id,
  }));
}
