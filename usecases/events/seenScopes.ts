import type { StorableEvent } from '../../db/events/eventColumns.js';
import type { InstrumentedService } from '../../db/events/pairedReports.js';

/** Most instrumentations that are remembered; then all are forgotten, and recorded once more. */
const SEEN_MAX = 100_000;

/**
 * The instrumentations that this process has recorded for services of identified processes, so that a batch records only
 * those that are new (db/events/pairedReports.ts).
 */
export class SeenScopes {
  readonly #seen = new Set<string>();

  /** The instrumentations of a batch that were not remembered, each once. */
  findUnseen(orgId: string, events: readonly StorableEvent[]): InstrumentedService[] {
    const unseen = new Map<string, InstrumentedService>();
    let last: StorableEvent['call'] | undefined;
    for (const { call } of events) {
      const { process, serviceName, scopeName } = call;
      if (process?.isIdentified !== true || scopeName === '') continue;
      if (last?.scopeName === scopeName && last.serviceName === serviceName) continue;
      last = call;
      const key = keyOf(orgId, call);
      if (!this.#seen.has(key)) unseen.set(key, { serviceName, scopeName });
    }
    return [...unseen.values()];
  }

  /** Remembers instrumentations after the commit that recorded them. */
  remember(orgId: string, scopes: readonly InstrumentedService[]): void {
    if (this.#seen.size + scopes.length > SEEN_MAX) this.#seen.clear();
    for (const scope of scopes) this.#seen.add(keyOf(orgId, scope));
  }
}

function keyOf(orgId: string, { serviceName, scopeName }: InstrumentedService): string {
  return `${orgId}\u001f${serviceName}\u001f${scopeName}`;
}
